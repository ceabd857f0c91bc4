package dropin

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func serve(t *testing.T, d Databases) string {
	t.Helper()
	mux := http.NewServeMux()
	d.Add(mux)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

func TestAsk(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		unsafe       bool
		prefix, want string
	}{
		{false, "/registry", "plinth.db"},
		{false, "registry/", "plinth.db"},
		{true, "/registry", "plinth.db?durability=off"},
		{false, "/other", "plinth-other.db"},
		{false, "/../a?b", "plinth-..+2Fa+3Fb.db"},
		{false, "", "plinth-.db"},
	} {
		got, err := Ask(t.Context(), []string{serve(t, Databases{dir, tt.unsafe})}, tt.prefix)
		if want := "sqlite://" + filepath.Join(dir, tt.want); err != nil || got != want {
			t.Errorf("%+v: %s, %v; want %s", tt, got, err, want)
		}
	}
}

// A server that is not there yet is waited for, and the next one is asked meanwhile.
func TestAskWaits(t *testing.T) {
	var left atomic.Int64 // requests that find nobody
	mux := http.NewServeMux()
	Databases{Directory: t.TempDir()}.Add(mux)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if left.Add(-1) >= 0 {
			panic(http.ErrAbortHandler)
		}
		mux.ServeHTTP(w, r)
	}))
	defer s.Close()
	left.Store(3)
	if _, err := Ask(t.Context(), []string{s.URL}, ""); err != nil || left.Load() != -1 {
		t.Errorf("%v, with %d requests left", err, left.Load())
	}
	left.Store(math.MaxInt64)
	if _, err := Ask(t.Context(), []string{s.URL, serve(t, Databases{Directory: t.TempDir()})}, ""); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := Ask(ctx, []string{s.URL}, ""); err == nil || errors.Is(err, ErrOther) || strings.Contains(err.Error(), page) {
		t.Errorf("a server that never comes: %v", err)
	}
}

// Other servers are told apart at once.
func TestAskOthers(t *testing.T) {
	respond := func(h http.HandlerFunc) string {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return s.URL
	}
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	for name, tt := range map[string]struct{ server, want string }{
		"etcd": {respond(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/version" {
				http.NotFound(w, r)
				return
			}
			_, _ = io.WriteString(w, `{"etcdserver":"3.5.21","etcdcluster":"3.5.0"}`)
		}), "it is etcd 3.5.21"},
		"web server":  {respond(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }), "it does not say that it has a database"},
		"TLS":         {strings.Replace(secure.URL, "https", "http", 1), "it does not say that it has a database"},
		"https":       {secure.URL, "that is at an http:// address"},
		"no URL":      {"127.0.0.1:2379", "that is at an http:// address"},
		"unix":        {"unix:///run/etcd.sock", "that is at an http:// address"},
		"far machine": {serve(t, Databases{Directory: "/no/such/directory"}), "its directory /no/such/directory is not on this machine"},
	} {
		_, err := Ask(t.Context(), []string{tt.server}, "/registry")
		if !errors.Is(err, ErrOther) || !strings.HasPrefix(err.Error(), tt.server+": not plinth's: ") || !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("%s: %v; want %s", name, err, tt.want)
		}
	}
}
