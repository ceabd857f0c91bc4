package rest

import (
	stderrors "errors"
	"math"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	failed    error             // what the stream says instead of events
	timeout   time.Duration
}

// watch streams changes, from the state at the start or from a resourceVersion on.
func (q *request) watch() error {
	if !q.kind.Can("watch") {
		return q.unwatchable()
	}
	options, sel, err := q.listOptions()
	if err != nil {
		return err
	}
	if asksState(options) && options.AllowWatchBookmarks {
		if err := q.withoutTable(); err != nil {
			return err
		}
	}
	s := &watching{q: q, sel: sel, bookmarks: options.AllowWatchBookmarks}
	s.timeout = q.api.watchTimeout(options)
	if err := s.start(options); err != nil {
		return err
	}
	if s.enc, err = q.newEventEncoder(); err != nil {
		return err
	}
	watcher, err := s.open()
	if err != nil {
		return err
	}
	if watcher != nil {
		defer watcher.Close()
	}
	if isWebSocket(q.r) {
		s.serveWebSocket(watcher)
	} else {
		s.serve(q.r.Context(), watcher, q.w)
	}
	return nil
}

// withoutTable negotiates anew if the client would get a Table: upstream streams no state
// in that form.
func (q *request) withoutTable() error {
	if q.out.form != asTable {
		return nil
	}
	o, ok := q.offer(), false
	o.tables = false
	if q.out, ok = negotiate(q.r, o); !ok {
		return notAcceptable(o.mediaTypes())
	}
	return nil
}

// watchTimeout spreads the ends of watches that named none, so that clients don't come
// back all at once. A negative time, or one too large for a Duration, is over at once.
func (a *API) watchTimeout(o *metainternalversion.ListOptions) time.Duration {
	if o.TimeoutSeconds != nil && *o.TimeoutSeconds != 0 {
		return max(0, time.Duration(*o.TimeoutSeconds)*time.Second)
	}
	return time.Duration(float64(a.o.MinWatch) * (1 + rand.Float64()))
}

// asksState tells whether the client wants the state as events and an end of it.
func asksState(o *metainternalversion.ListOptions) bool {
	return o.SendInitialEvents != nil && *o.SendInitialEvents
}

// start finds where the stream begins: at a revision, or with the state as events.
func (s *watching) start(o *metainternalversion.ListOptions) error {
	rv, err := parseVersion(o.ResourceVersion)
	if err != nil {
		return plain(err)
	}
	withState := asksState(o) || (o.SendInitialEvents == nil && rv == 0)
	if rv > 0 && !withState {
		s.from = int64(min(rv, math.MaxInt64))
		s.through = s.from
		return nil
	}
	err = s.q.api.fresh(s.q.r.Context(), o.ResourceVersion)
	if errors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		s.failed = err
		return nil
	}
	if err != nil {
		return err
	}
	view := s.q.api.store.Current(s.q.kind.Prefix())
	s.from, s.through = view.Revision(), view.Revision()
	if !withState {
		return nil
	}
	s.markEnd = asksState(o) && s.bookmarks
	p, err := s.q.readFirst(s.q.r.Context(), view, 0, &s.sel)
	if err == nil {
		s.initial, err = s.q.converted(p.entries)
	}
	return err
}

// open starts the watcher; nil if the stream is to say why there is none. As in upstream
// nothing that is wrong with a start is an error of the request.
func (s *watching) open() (*sqlstore.Watcher, error) {
	if s.failed != nil {
		return nil, nil
	}
	watcher, err := s.q.api.store.Watch(s.q.kind.Prefix(), s.sel.watched(), s.from)
	if stderrors.Is(err, sqlstore.ErrCompacted) {
		s.failed = err
		return nil, nil
	}
	return watcher, err
}
