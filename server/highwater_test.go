package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientrest "k8s.io/client-go/rest"
)

// A database that is put back to an older state goes on above all that was served, and
// watches from before it are told that their revision is gone.
func TestRestoredBackup(t *testing.T) {
	dir := t.TempDir()
	db := filepath.Join(dir, "plinth.db")
	open := func() *Server {
		s := New(Config{DataDir: dir, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
		if err := s.Open(context.Background()); err != nil {
			t.Fatal(err)
		}
		return s
	}
	create := func(s *Server, name string) {
		body := fmt.Sprintf(`{"metadata":{"name":%q}}`, name)
		request(t, s, "POST", "/api/v1/namespaces/default/configmaps", body, 201)
	}
	s := open()
	create(s, "kept")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	backup, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	s = open()
	for i := range 5 {
		create(s, fmt.Sprint("lost-", i))
	}
	served := s.store.Revision()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(db, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	s = open()
	defer s.Close()
	if now := s.store.Revision(); now <= served {
		t.Errorf("revision went back from %d to %d", served, now)
	}
	request(t, s, "GET", "/api/v1/namespaces/default/configmaps/kept", "", 200)
	request(t, s, "GET", "/api/v1/namespaces/default/configmaps/lost-0", "", 404)
	watch := request(t, s, "GET", fmt.Sprintf("/api/v1/configmaps?watch=1&timeoutSeconds=1&resourceVersion=%d", served), "", 200)
	if !strings.Contains(watch, `"code":410`) {
		t.Errorf("a watch from before the restore got %s", watch)
	}
	create(s, "after")
}

func request(t *testing.T, s *Server, method, path, body string, want int) string {
	t.Helper()
	client, err := clientrest.HTTPClientFor(s.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(method, s.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != want {
		t.Fatalf("%s %s: status %d, want %d: %s %v", method, path, resp.StatusCode, want, text, err)
	}
	return string(text)
}
