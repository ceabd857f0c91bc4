package audit

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiaudit "k8s.io/apiserver/pkg/audit"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

const policy = `{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"Metadata"}]}`

// write makes a file with that text.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func never(*apirequest.RequestInfo) bool { return false }

// There is a log only if the options say what to log and where.
func TestOpen(t *testing.T) {
	for name, tt := range map[string]struct {
		policy, path string
		open, lacks  bool
		err          string
	}{
		"neither":          {"", "", false, false, ""},
		"a policy alone":   {policy, "", false, false, ""},
		"a file alone":     {"", "log", false, true, ""},
		"both":             {policy, "log", true, false, ""},
		"a policy spoiled": {"rules: 7", "log", false, false, "policy"},
	} {
		o := NewOptions()
		if tt.policy != "" {
			o.PolicyFile = write(t, tt.policy)
		}
		if tt.path != "" {
			o.LogOptions.Path = filepath.Join(t.TempDir(), tt.path)
		}
		if err := Check(o); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		l, err := Open(o, never)
		if (l != nil) != tt.open || (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: open: %v, error %v", name, l != nil, err)
		}
		if LacksPolicy(o) != tt.lacks {
			t.Errorf("%s: lacks a policy: %v", name, !tt.lacks)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("%s: close: %v", name, err)
		}
	}
	if l, err := Open(nil, never); l != nil || err != nil || LacksPolicy(nil) {
		t.Errorf("without options: %v, %v", l, err)
	}
}

// slowBackend takes its events when it is let go.
type slowBackend struct {
	apiaudit.Backend
	leave chan struct{}
}

func (b slowBackend) Shutdown() { <-b.leave }

// Close waits for events to be sent for as long as its context allows, and a moment longer.
func TestCloseIsBounded(t *testing.T) {
	leave := make(chan struct{})
	defer close(leave)
	l := &Log{backend: slowBackend{leave: leave}, stop: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	begun := time.Now()
	if err := l.Close(ctx); !errors.Is(err, errLost) {
		t.Errorf("error %v, want %v", err, errLost)
	}
	if took := time.Since(begun); took < closeGrace {
		t.Errorf("events had %v to get out, want %v", took, closeGrace)
	}
}

// The event has the id of the answer.
func TestBegin(t *testing.T) {
	answer := http.Header{"Audit-Id": {"one"}}
	r, err := http.NewRequestWithContext(t.Context(), "GET", "/version", nil)
	if err != nil {
		t.Fatal(err)
	}
	info := &apirequest.RequestInfo{Path: "/version"}
	r = r.WithContext(Begin(r.Context(), info, answer))
	if id, _ := apiaudit.AuditIDFrom(r.Context()); id != "one" {
		t.Errorf("id %q", id)
	}
	if got, _ := apirequest.RequestInfoFrom(r.Context()); got != info {
		t.Errorf("request info %v", got)
	}
}
