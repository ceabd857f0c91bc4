package audit

import (
	"net/http"
	"testing"

	"github.com/google/uuid"
)

// A client's own id is kept; else there is a new one.
func TestIdentify(t *testing.T) {
	for name, tt := range map[string]struct {
		asked []string
		want  string // "": a new one
	}{
		"none":    {nil, ""},
		"empty":   {[]string{""}, ""},
		"the own": {[]string{"mine"}, "mine"},
		"several": {[]string{"first", "second"}, "first"},
	} {
		answer := http.Header{}
		Identify(answer, &http.Request{Header: http.Header{"Audit-Id": tt.asked}})
		got := answer["Audit-Id"]
		if len(got) != 1 || tt.want != "" && got[0] != tt.want {
			t.Errorf("%s: %q", name, got)
			continue
		}
		if tt.want == "" {
			if id, err := uuid.Parse(got[0]); err != nil || id.Version() != 4 || id.Variant() != uuid.RFC4122 {
				t.Errorf("%s: %q is no random UUID: %v", name, got, err)
			}
		}
	}
}

func TestNewIDs(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := newID()
		if seen[id] {
			t.Fatalf("%s comes twice", id)
		}
		seen[id] = true
	}
}
