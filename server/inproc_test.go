package server

import (
	"net/http"
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
