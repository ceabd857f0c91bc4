package rest

import (
	"math"
	"math/rand/v2"
	"time"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"

	"github.com/plinth-io/plinth/sqlstore"
)

// A watch is one goroutine, the request's own. It polls its store watcher and sleeps
// until the watcher, a timer or the end wakes it.

// watching is one watch being served.
type watching struct {
	q   *request
	sel selection
	enc *eventEncoder

	from      int64 // revision that the stream starts after
	through   int64 // the client has seen all up to here
	bookmarks bool
	initial   []*sqlstore.Entry // state to send first
	markEnd   bool              // end the initial events with an annotated bookmark
	timeout   time.Duration
}

// watch streams changes, from the state at the start or from a resourceVersion on.
func (q *request) watch() error {
	options, sel, err := q.listOptions()
	if err != nil {
		return err
	}
	s := &watching{q: q, sel: sel, bookmarks: options.AllowWatchBookmarks}
	s.timeout = q.api.watchTimeout(options)
	if err := s.start(options); err != nil {
		return err
	}
	if s.enc, err = q.newEventEncoder(); err != nil {
		return err
	}
	if isWebSocket(q.r) {
		return s.serveWebSocket()
	}
	return s.serve(q.r.Context(), q.w)
}

// watchTimeout spreads the ends of watches that named none, so that clients don't come
// back all at once.
func (a *API) watchTimeout(o *metainternalversion.ListOptions) time.Duration {
	if o.TimeoutSeconds != nil && *o.TimeoutSeconds > 0 {
		return time.Duration(*o.TimeoutSeconds) * time.Second
	}
	return time.Duration(float64(a.o.MinWatch) * (1 + rand.Float64()))
}

// start finds where the stream begins: at a revision, or with the state as events.
func (s *watching) start(o *metainternalversion.ListOptions) error {
	rv, err := parseVersion(o.ResourceVersion)
	if err != nil {
		return plain(err)
	}
	asked := o.SendInitialEvents != nil
	withState := rv == 0
	if asked {
		withState = *o.SendInitialEvents
	}
	if rv > 0 && !withState {
		s.from = int64(min(rv, math.MaxInt64))
		s.through = s.from
		return nil
	}
	if err := s.q.api.fresh(s.q.r.Context(), o.ResourceVersion); err != nil {
		return err
	}
	view := s.q.api.store.Current(s.q.kind.Prefix())
	s.from, s.through = view.Revision(), view.Revision()
	if !withState {
		return nil
	}
	s.markEnd = asked && s.bookmarks
	p, err := s.q.readFirst(s.q.r.Context(), view, 0, &s.sel)
	s.initial = p.entries
	return err
}
