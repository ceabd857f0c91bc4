package server

import (
	"net/http"
	"testing"
	"time"
)

// What every cluster begins with comes back when somebody deletes it.
func TestDeletedServiceComesBack(t *testing.T) {
	s := New(Config{Linger: time.Millisecond, Controllers: []string{}})
	s.maintainEvery = 10 * time.Millisecond
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	client, begun := admin(t, s), time.Now()
	for _, path := range []string{
		"/api/v1/namespaces/default/services/kubernetes",
		"/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical",
	} {
		if code, _, body := do(t, client, "DELETE", s.URL()+path, ""); code != http.StatusOK {
			t.Fatalf("delete %s: %d %s", path, code, body)
		}
		for code := 0; code != http.StatusOK; time.Sleep(time.Millisecond) {
			if time.Since(begun) > 30*time.Second {
				t.Fatalf("%s does not come back: %d", path, code)
			}
			code, _, _ = do(t, client, "GET", s.URL()+path, "")
		}
	}
}
