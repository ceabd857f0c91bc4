package fairness

import (
	"bytes"
	"net/http"

	"k8s.io/apiserver/pkg/server/mux"
)

// DebugPaths are the debug pages of priority and fairness.
var DebugPaths = []string{
	"/debug/api_priority_and_fairness/dump_priority_levels",
	"/debug/api_priority_and_fairness/dump_queues",
	"/debug/api_priority_and_fairness/dump_requests",
}

// Debug serves the debug pages, which upstream writes. It writes them with a lock held that every
// request needs, so they go into memory first: a client that reads slowly must not stop the server.
func (c *Controller) Debug() http.Handler {
	pages := mux.NewPathRecorderMux("priority and fairness")
	c.upstream.Install(pages)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := page{ResponseWriter: w}
		pages.ServeHTTP(&p, r)
		_, _ = w.Write(p.text.Bytes())
	})
}

// page is an answer that is kept until it is whole.
type page struct {
	http.ResponseWriter
	text bytes.Buffer
}

func (p *page) Write(b []byte) (int, error) { return p.text.Write(b) }
