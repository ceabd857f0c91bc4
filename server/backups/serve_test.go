package backups

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/backup"
	"github.com/plinth-io/plinth/sqlstore/scrub"
	"github.com/plinth-io/plinth/sqlstore/storetest"
)

func opened(t *testing.T, dsn string, objects int) *Backups {
	t.Helper()
	store := storetest.Open(t, dsn, sqlstore.Options{})
	storetest.PutMany(t, objects, func(i int) (*sqlstore.Entry, error) {
		name := fmt.Sprintf("c%04d", i)
		value := fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":"default"},"data":{"a":"%x"}}`, name, i*i*7919)
		return storetest.Put(context.Background(), store, "/registry/core/configmaps/default/"+name, value)
	})
	return New(Config{Source: store.Source(), Program: "v1", Revision: store.Revision, Logger: slog.New(slog.DiscardHandler)})
}

func ask(t *testing.T, b *Backups, w http.ResponseWriter, target string) error {
	return b.Serve(w, httptest.NewRequestWithContext(t.Context(), "GET", target, nil))
}

// slow is a client that reads when it may.
type slow struct {
	*httptest.ResponseRecorder
	reading, may chan struct{}
}

func (s *slow) Write(b []byte) (int, error) {
	select {
	case s.reading <- struct{}{}:
		<-s.may
	default:
	}
	return s.ResponseRecorder.Write(b)
}

// One backup is made at a time.
func TestServe(t *testing.T) {
	for _, dsn := range []string{logtest.SQLite(t), storetest.Memory} {
		b := opened(t, dsn, 500)
		w := &slow{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
		done := make(chan error)
		go func() { done <- ask(t, b, w, Path) }()
		<-w.reading
		if err := ask(t, b, httptest.NewRecorder(), Path); !apierrors.IsTooManyRequests(err) {
			t.Errorf("a second one: %v", err)
		}
		close(w.may)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		_, r, err := backup.Verify(t.Context(), bytes.NewReader(w.Body.Bytes()), scrub.Options{})
		if err != nil || r.Rows != 500 || r.Problems > 0 {
			t.Errorf("%+v, %v", r, err)
		}
		if err := ask(t, b, httptest.NewRecorder(), Path); err != nil {
			t.Errorf("after it: %v", err)
		}
	}
}

// A request that cannot be answered is refused before anything is sent, and one that breaks off later
// ends in the middle.
func TestServeBad(t *testing.T) {
	b := opened(t, logtest.SQLite(t), 5000)
	if err := ask(t, b, httptest.NewRecorder(), Path+"?history=much"); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "write history=true") {
		t.Errorf("history=much: %v", err)
	}
	if err := b.Serve(httptest.NewRecorder(), httptest.NewRequest("POST", Path, nil)); !apierrors.IsMethodNotSupported(err) {
		t.Errorf("POST: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	if err := b.Serve(w, httptest.NewRequestWithContext(ctx, "GET", Path, nil)); err == nil || w.Body.Len() > 0 {
		t.Errorf("a client that has gone: %v, %d bytes", err, w.Body.Len())
	}
	ctx, cancel = context.WithCancel(t.Context())
	half := &slow{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	done := make(chan error)
	go func() { done <- b.Serve(half, httptest.NewRequestWithContext(ctx, "GET", Path, nil)) }()
	<-half.reading
	cancel()
	close(half.may)
	if err := <-done; err != nil {
		t.Errorf("a client that goes: %v", err)
	}
	if _, _, err := backup.Verify(t.Context(), bytes.NewReader(half.Body.Bytes()), scrub.Options{}); err == nil {
		t.Error("half a backup is taken for a whole one")
	}
}

// Work rests while others write, and only then.
func TestPace(t *testing.T) {
	revision := int64(1)
	pace := NewPace(t.Context(), func() int64 { return revision })
	work := func() time.Duration {
		for begun := time.Now(); time.Since(begun) < 5*time.Millisecond; {
		}
		begun := time.Now()
		pace()
		return time.Since(begun)
	}
	if rest := work(); rest > 20*time.Millisecond {
		t.Errorf("nobody writes, and it rests for %v", rest)
	}
	revision++
	if rest := work(); rest < 40*time.Millisecond {
		t.Errorf("somebody writes, and it rests for %v", rest)
	}
}
