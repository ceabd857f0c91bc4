package rest

import (
	"errors"
	"math"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// A watch is one goroutine, the request's own. It polls its store watcher and sleeps
// until the watcher, a timer or the end wakes it.

// watching is one watch that is being served.
type watching struct {
	q   *request
	sel selection
	enc *eventEncoder

	from      int64 // revision that the stream starts after
	through   int64 // the client has seen all changes up to this revision
	bookmarks bool
	initial   []*sqlstore.Entry // state to send first
	markEnd   bool              // end the initial events with an annotated bookmark
	compress  bool              // for clients that accept it
	failed    error             // sent instead of events
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
	s := &watching{q: q, sel: sel, bookmarks: options.AllowWatchBookmarks, compress: asksState(options) && options.AllowWatchBookmarks}
	s.timeout = q.api.watchTimeout(options)
	if err := s.start(options); err != nil {
		return err
	}
	if s.enc, err = newEventEncoder(q); err != nil {
		return err
	}
	watcher, err := s.open(options)
	if err != nil {
		return err
	}
	if watcher != nil {
		defer watcher.Close()
	}
	if isWebSocket(q.r) {
		s.serveWebSocket(watcher)
	} else {
		s.serve(q.ctx, watcher, q.w)
	}
	return nil
}

// watchTimeout spreads the ends of watches that name no timeout, so that clients do not come back
// all at once. A timeout that is negative, or too large for a Duration, is over at once.
func (a *API) watchTimeout(o *metainternalversion.ListOptions) time.Duration {
	if o.TimeoutSeconds != nil && *o.TimeoutSeconds != 0 {
		return max(0, time.Duration(*o.TimeoutSeconds)*time.Second)
	}
	return time.Duration(float64(a.o.MinWatch) * (1 + rand.Float64()))
}

// asksState tells whether the client asks for the state as initial events, with a mark at their
// end.
func asksState(o *metainternalversion.ListOptions) bool {
	return o.SendInitialEvents != nil && *o.SendInitialEvents
}

// start finds where the stream begins: at a revision, or with the state as events.
func (s *watching) start(o *metainternalversion.ListOptions) error {
	rv, err := parseVersion(o.ResourceVersion)
	if err != nil {
		return response.AsStatus(err)
	}
	withState := asksState(o) || (o.SendInitialEvents == nil && rv == 0)
	if rv > 0 && !withState {
		s.from = int64(min(rv, math.MaxInt64))
		s.through = s.from
		return nil
	}
	err = s.q.api.fresh(s.q.ctx, o.ResourceVersion)
	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
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
	read := s.q.reader(&s.sel, true)
	p, err := read.first(s.q.ctx, view, 0)
	if err = s.q.unreadableList(err); err == nil {
		s.initial, err = s.q.converted(s.q.ctx, p.entries)
	}
	return err
}

// open starts the watcher. If the start is impossible, open returns nil and keeps the reason in
// failed: as in upstream, the stream tells the client, and the request does not fail.
func (s *watching) open(o *metainternalversion.ListOptions) (kind.Events, error) {
	if s.failed != nil {
		return nil, nil
	}
	watcher, err := s.events(o)
	if errors.Is(err, changelog.ErrCompacted) {
		s.failed = err
		return nil, nil
	}
	return watcher, err
}

// events returns the changes of the Kind's objects, or what a Kind without storage makes of changes.
// That selects by itself.
func (s *watching) events(o *metainternalversion.ListOptions) (kind.Events, error) {
	if s.q.kind.Observed == nil {
		if err := s.q.reaches(s.q.ctx, s.from+1); err != nil {
			return nil, err
		}
		return s.q.api.store.WatchWhere(s.q.kind.Prefix(), s.sel.watched(), s.from, s.sel.where)
	}
	s.sel = selection{kind: s.q.kind}
	events, err := s.q.kind.Observed.(kind.Follower).Follow(s.q.rulesContext(), s.from, o)
	if err != nil {
		return nil, response.FromRegistry(err)
	}
	return events, nil
}
