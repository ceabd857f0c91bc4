package server

import (
	"net/http"
	"sync"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
)

// TestInProcessLeavesTheRequest sends a request whose encoded path the router drops: the
// client's own request must keep it, as client-go reads it while the handler runs.
func TestInProcessLeavesTheRequest(t *testing.T) {
	s := start(t, Config{})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://plinth.invalid/api/v1/namespaces/a%2Fb", nil)
	if err != nil {
		t.Fatal(err)
	}
	before := *r.URL
	response, err := s.InProcess(&user.DefaultInfo{Name: "a"}).Transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if *r.URL != before {
		t.Errorf("the client's URL is now %+v, it was %+v", *r.URL, before)
	}
}

// An answer without a body ends its handler before anybody reads, and the end of the handler ends the
// request's context: the answer counts all the same, however late the client looks.
func TestInProcessEmptyAnswers(t *testing.T) {
	empty := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) })
	transport := &inProcess{handler: func() http.Handler { return empty }, ctx: t.Context(), who: &user.DefaultInfo{Name: "a"}}
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for range 2000 {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://plinth.invalid/apis", nil)
				if err != nil {
					t.Error(err)
					return
				}
				response, err := transport.RoundTrip(r)
				if err != nil {
					t.Errorf("an answer is lost: %v", err)
					return
				}
				response.Body.Close()
			}
		})
	}
	clients.Wait()
}
