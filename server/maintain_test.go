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
	url := s.URL() + "/api/v1/namespaces/default/services/kubernetes"
	if code, _, body := do(t, client, "DELETE", url, ""); code != http.StatusOK {
		t.Fatalf("delete: %d %s", code, body)
	}
	for code := 0; code != http.StatusOK; time.Sleep(time.Millisecond) {
		if time.Since(begun) > 30*time.Second {
			t.Fatalf("the Service does not come back: %d", code)
		}
		code, _, _ = do(t, client, "GET", url, "")
	}
}
