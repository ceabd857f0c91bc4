package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
)

// PagePath is the path below which Config.Page answers.
const PagePath = "/ui/"

// Page makes the handler of a page for people. Its requests to the API go through what through returns, with the
// credentials that they carry or that the TLS connection of the visitor has shown: they are authenticated, authorized,
// audited and queued as if the visitor had sent them.
type Page func(through func(*tls.ConnectionState) http.RoundTripper) http.Handler

// front is the handler of all requests: the page for people, and the API.
func (s *Server) front() http.Handler {
	var page http.Handler
	if s.config.Page != nil {
		page = s.config.Page(s.through)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case page != nil && (strings.HasPrefix(r.URL.Path, PagePath) || r.URL.Path+"/" == PagePath):
			page.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), remoteKey{}, r.RemoteAddr)))
		case r.URL.Path == "/" && isBrowser(r):
			welcome(w, r, page != nil)
		default:
			s.guard.ServeHTTP(w, r)
		}
	})
}

// isBrowser tells whether a person has opened an address.
func isBrowser(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// welcome leads a browser to the page, or says where there is one.
func welcome(w http.ResponseWriter, r *http.Request, page bool) {
	w.Header().Set("Cache-Control", "no-store")
	if page {
		http.Redirect(w, r, PagePath, http.StatusFound)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, "This is the Kubernetes API of a plinth. To look at it in a browser run plinth ui, or start it with plinth serve --ui.")
}

// remoteKey is of the address that a page's visitor has, for the audit log.
type remoteKey struct{}

// visiting is an http.RoundTripper for the requests of a page.
type visiting struct {
	s     *Server
	state *tls.ConnectionState
}

func (s *Server) through(state *tls.ConnectionState) http.RoundTripper { return &visiting{s, state} }

// RoundTrip hands a request to the API as a new connection would, on which nobody has been identified yet.
func (t *visiting) RoundTrip(r *http.Request) (*http.Response, error) {
	remote, _ := r.Context().Value(remoteKey{}).(string)
	r = r.Clone(unknown{r.Context()})
	in := &inProcess{handler: func() http.Handler { return t.as(remote) }, ctx: t.s.ctx}
	return in.RoundTrip(r)
}

// as is the API for requests of that connection.
func (t *visiting) as(remote string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.TLS = t.state
		if remote != "" {
			r.RemoteAddr = remote
		}
		t.s.guard.ServeHTTP(w, r)
	})
}

// unknown is a context that ends with another one, and has none of its values: they say who sent the page's own request.
type unknown struct{ context.Context }

func (unknown) Value(any) any { return nil }
