// Package ui is the page that plinth shows in a browser: the objects of a cluster, each with its past.
//
// It is a client, as package past is, through which it reads the history. Every read and write goes through the public
// API with the credentials of the visitor, so that the page never has more rights than the one who looks at it. A Door
// says who that is: Local for plinth ui, SignIn for plinth serve --ui.
//
// Pages are made here, with html/template; scripts add what is live. Each page is a file, with its template of the same
// name in templates. All that a page shows is in its address.
package ui

import (
	"net/http"
	"strings"

	clientrest "k8s.io/client-go/rest"
)

// Options say what the page is served with.
type Options struct {
	Base string // path below which it is, with / at both ends
	Door Door
}

// Server is the http.Handler of the page.
type Server struct {
	base        string
	door        Door
	mux         *http.ServeMux
	connections *connections
	origin      *http.CrossOriginProtection
	rowsAtOnce  int // how many rows of a list a script gets in one answer
}

// New returns the page. It asks nothing yet.
func New(o Options) *Server {
	s := &Server{
		base: o.Base, door: o.Door, mux: http.NewServeMux(),
		connections: newConnections(), origin: http.NewCrossOriginProtection(), rowsAtOnce: 1000,
	}
	s.routes()
	return s
}

// routes adds every path of the page, below its base. The objects of the cluster have the namespace "-".
func (s *Server) routes() {
	s.mux.HandleFunc("GET /static/{name}", serveAsset)
	s.door.routes(s)

	s.page("/", func(*visit) error { return problem(http.StatusNotFound, "There is no page here.") })
	s.page("GET /{$}", (*visit).overview)
	s.page("GET /now", (*visit).now)
	s.page("GET /now/day", (*visit).nowDay)
	s.page("GET /live/now", (*visit).liveNow)
	s.page("GET /server", (*visit).server)
	s.page("GET /server/figures", (*visit).serverFigures)
	s.page("GET /kinds/{resource}", (*visit).kind)
	s.page("GET /rows/{resource}", (*visit).rows)
	s.page("GET /live/rows/{resource}", (*visit).liveRows)

	s.page("GET /search", (*visit).search)
	s.page("GET /rights", (*visit).rights)
	s.page("GET /definitions", (*visit).definitions)
	s.page("GET /definitions/{name}", (*visit).definition)

	s.page("GET /objects/{resource}/{namespace}/{name}", of((*visit).subject, "yaml", (*subject).object))
	s.page("GET /objects/{resource}/{namespace}/{name}/timeline", of((*visit).pastSubject, "timeline", (*subject).timeline))
	s.page("GET /objects/{resource}/{namespace}/{name}/blame", of((*visit).pastSubject, "blame", (*subject).blame))
	s.page("GET /objects/{resource}/{namespace}/{name}/undo", of((*visit).pastSubject, "timeline", (*subject).undo))
	s.page("POST /objects/{resource}/{namespace}/{name}/undo", of((*visit).pastSubject, "timeline", (*subject).doUndo))
	s.page("GET /objects/{resource}/{namespace}/{name}/undelete", of((*visit).pastSubject, "timeline", (*subject).undelete))
	s.page("POST /objects/{resource}/{namespace}/{name}/undelete", of((*visit).pastSubject, "timeline", (*subject).doUndelete))
	s.page("GET /trash", (*visit).trash)
	s.page("GET /objects/{resource}/{namespace}/{name}/tree", of((*visit).subject, "tree", (*subject).tree))
	s.page("GET /objects/{resource}/{namespace}/{name}/logs", of((*visit).subject, "logs", (*subject).logs))
	s.page("GET /live/logs/{namespace}/{name}", (*visit).liveLogs)
	for _, method := range []string{"GET", "POST"} { // a form, and what it asks for
		s.page(method+" /objects/{resource}/{namespace}/{name}/edit", of((*visit).presentSubject, "edit", (*subject).edit))
		s.page(method+" /objects/{resource}/{namespace}/{name}/scale", of((*visit).presentSubject, "scale", (*subject).scale))
		s.page(method+" /objects/{resource}/{namespace}/{name}/restart", of((*visit).presentSubject, "restart", (*subject).restart))
		s.page(method+" /objects/{resource}/{namespace}/{name}/delete", (*visit).remove)
	}
}

// page adds a path that only visitors who are let in see.
func (s *Server) page(pattern string, show func(*visit) error) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		v, err := s.enter(w, r)
		if err == nil {
			err = v.answer(show)
		}
		if err != nil {
			s.fail(w, r, v, err)
		}
	})
}

// of is a page about the object that the path names, which find looks up.
func of(find func(v *visit, tab string) (*subject, error), tab string, show func(*subject) error) func(*visit) error {
	return func(v *visit) error {
		s, err := find(v, tab)
		if err != nil {
			return err
		}
		return show(s)
	}
}

// mostForm bounds what a form may send; the API takes objects of about 3 MB.
const mostForm = 8 << 20

// answer shows a page. Forms are read here, within bounds. What a page does not expect is an error of this request alone.
func (v *visit) answer(show func(*visit) error) (err error) {
	defer func() {
		if reason := recover(); reason != nil && reason != http.ErrAbortHandler {
			err = problem(http.StatusInternalServerError, "This page does not know how to show that: %v", reason)
		}
	}()
	if v.r.Method == http.MethodPost {
		v.r.Body = http.MaxBytesReader(v.w, v.r.Body, mostForm)
		if err := v.r.ParseForm(); err != nil {
			return problem(http.StatusRequestEntityTooLarge, "The form cannot be read: %v", err)
		}
	}
	return show(v)
}

// policy is what a browser may load for the page: its own files, and nothing from anywhere else.
const policy = "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"

// ServeHTTP answers requests below the base.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if err := s.door.guard(r); err != nil {
		s.fail(w, r, nil, err)
		return
	}
	if err := s.origin.Check(r); err != nil {
		s.fail(w, r, nil, problem(http.StatusForbidden, "This request comes from another page, and was not carried out."))
		return
	}
	if r.URL.Path+"/" == s.base {
		http.Redirect(w, r, s.base, http.StatusFound)
		return
	}
	if !strings.HasPrefix(r.URL.Path, s.base) {
		s.fail(w, r, nil, problem(http.StatusNotFound, "There is no page here."))
		return
	}
	http.StripPrefix(strings.TrimSuffix(s.base, "/"), s.mux).ServeHTTP(w, r)
}

// Door lets visitors in.
type Door interface {
	// guard refuses requests that no browser of a visitor sends, such as those with a foreign Host.
	guard(r *http.Request) error
	// enter returns with what credentials the requests of a visitor go on, and a key that is the same for the same
	// ones. The error of somebody who is to sign in first is errSignIn.
	enter(r *http.Request) (key string, config *clientrest.Config, err error)
	// routes adds the paths of the door itself.
	routes(s *Server)
	// welcome shows somebody who is not known how to get in; false if there is nothing to show. err says why he is not.
	welcome(w http.ResponseWriter, r *http.Request, err error) bool
	// server is the address of the API, for people.
	server(r *http.Request) string
	// leave says where a visitor signs out; nothing if he cannot.
	leave() string
}
