package apiload

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
)

// TestNodesWork sends a node a pod that is new, then one that is being deleted, and one that runs: the first gets a status, the
// second is deleted at once, and the third is left alone. A conflict is no error, another refusal is.
func TestNodesWork(t *testing.T) {
	asked := make(chan string, 10)
	refuse := false
	clients := clientsOf(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Query().Has("watch"):
			for _, pod := range []string{`"metadata":{"namespace":"a","name":"new"},"status":{"phase":"Pending"}`,
				`"metadata":{"namespace":"a","name":"running"},"status":{"phase":"Running"}`,
				`"metadata":{"namespace":"a","name":"ending","deletionTimestamp":"2026-01-01T00:00:00Z"},"status":{"phase":"Running"}`} {
				fmt.Fprintf(w, `{"type":"ADDED","object":{%s}}`+"\n", pod)
			}
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case r.Method == http.MethodPut || r.Method == http.MethodGet || r.Method == http.MethodPost:
		case r.URL.Path == "/api/v1/nodes/node-000/status":
		case refuse:
			http.Error(w, "no", http.StatusForbidden)
		default:
			asked <- r.Method + " " + r.URL.Path
			http.Error(w, "changed meanwhile", http.StatusConflict)
		}
	})
	n := &Nodes{Clients: clients, Count: 1, Prefix: "node-"}
	if err := n.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := n.Working(t.Context(), func(ctx context.Context) error {
		for _, want := range []string{"PATCH /api/v1/namespaces/a/pods/new/status", "DELETE /api/v1/namespaces/a/pods/ending"} {
			select {
			case got := <-asked:
				if got != want {
					t.Errorf("the node asked for %s, want %s", got, want)
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return errors.New("of its own")
	})
	if err == nil || err.Error() != "of its own" {
		t.Errorf("error %v", err)
	}
	refuse = true
	err = n.Working(t.Context(), func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	if Code(err) != http.StatusForbidden {
		t.Errorf("error %v", err)
	}
}
