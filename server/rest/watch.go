package rest

import (
	"context"
	stderrors "errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/plinth-io/plinth/sqlstore"
)

// A watch is one goroutine, the request's own. It polls its store watcher and sleeps
// until the watcher, a timer or the end wakes it.

// bookmarkBeforeEnd is how long before its end a watch sends a last bookmark.
const bookmarkBeforeEnd = 2 * time.Second

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
	enc, err := q.newEventEncoder()
	if err != nil {
		return err
	}
	s := &watching{q: q, sel: sel, enc: enc, bookmarks: options.AllowWatchBookmarks}
	s.timeout = q.api.watchTimeout(options)
	if err := s.start(options); err != nil {
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
	a, ctx := s.q.api, s.q.r.Context()
	sendInitial := o.SendInitialEvents != nil && *o.SendInitialEvents
	if o.SendInitialEvents == nil && (o.ResourceVersion == "" || o.ResourceVersion == "0") {
		sendInitial = true
	}
	s.markEnd = o.SendInitialEvents != nil && sendInitial && s.bookmarks
	if !sendInitial && o.ResourceVersion != "" && o.ResourceVersion != "0" {
		rv, err := parseVersion(o.ResourceVersion)
		s.from, s.through = rv, rv
		return err
	}
	if err := a.fresh(ctx, o.ResourceVersion); err != nil {
		return err
	}
	view := a.store.Current(s.q.kind.Prefix())
	s.from, s.through = view.Revision(), view.Revision()
	if !sendInitial {
		return nil
	}
	from, to := sqlstore.RangeOf(s.q.rangePrefix())
	p, err := s.q.scan(ctx, view, from, to, 0, &s.sel)
	s.initial = p.entries
	return err
}

// sink is where a watch writes to: an HTTP response or a WebSocket.
type sink interface {
	Write(p []byte) (int, error)
	Flush()
}

// serve streams over HTTP until the end of the watch. Nothing that happens after the
// headers are out can be an error of the request.
func (s *watching) serve(ctx context.Context, w http.ResponseWriter) error {
	watcher, startErr := s.q.api.store.Watch(s.q.kind.Prefix(), s.q.rangePrefix(), s.from)
	if startErr == nil {
		defer watcher.Close()
	} else if !stderrors.Is(startErr, sqlstore.ErrCompacted) {
		return startErr
	}
	w.Header()["Content-Type"] = []string{s.enc.contentType()}
	w.WriteHeader(http.StatusOK)
	out := httpSink{w, http.NewResponseController(w)}
	out.Flush()
	if startErr != nil {
		s.writeError(out, startErr)
		return nil
	}
	s.run(ctx, watcher, out)
	return nil
}

type httpSink struct {
	http.ResponseWriter
	c *http.ResponseController
}

func (o httpSink) Flush() { o.c.Flush() }

// run is the life of a watch. It ends when the client goes, the time is over, the server
// drains, or the watcher fails.
func (s *watching) run(ctx context.Context, watcher *sqlstore.Watcher, out sink) {
	if err := s.writeInitial(out); err != nil {
		return
	}
	s.initial = nil
	end := time.NewTimer(s.timeout)
	defer end.Stop()
	mark := newBookmarks(s.bookmarks, s.q.api.o.BookmarkEvery, s.timeout)
	defer mark.stop()
	for {
		wake := watcher.Wait()
		n, err := s.pass(ctx, watcher, out)
		if err != nil {
			s.writeError(out, err)
			return
		}
		if n > 0 {
			continue
		}
		select {
		case <-wake:
		case <-mark.c:
			if mark.next(); s.writeBookmark(out, nil) != nil {
				return
			}
		case <-end.C:
			return
		case <-ctx.Done():
			return
		case <-s.q.api.draining:
			return
		}
	}
}

// errGone ends a watch whose client cannot be written to.
var errGone = stderrors.New("client is gone")

// pass sends what the watcher has now, and returns how many events it had.
func (s *watching) pass(ctx context.Context, watcher *sqlstore.Watcher, out sink) (int, error) {
	events, through, err := watcher.Poll(ctx)
	if err != nil {
		return 0, err
	}
	b := s.enc.buffer()
	for _, e := range events {
		if b, err = s.append(b, e); err != nil {
			return 0, err
		}
		if len(b) >= chunk {
			if _, err := out.Write(b); err != nil {
				return 0, errGone
			}
			b = b[:0]
		}
	}
	s.through = through
	if len(b) > 0 {
		if _, err := out.Write(b); err != nil {
			return 0, errGone
		}
	}
	s.enc.release(b)
	if len(events) > 0 {
		out.Flush()
	}
	return len(events), nil
}

// append adds the event as this watch's selection sees it: an object that comes into the
// selection is ADDED, one that leaves it is DELETED, whatever really happened.
func (s *watching) append(b []byte, e *sqlstore.Event) ([]byte, error) {
	was, err := s.sel.matches(e.Prev)
	if err != nil {
		return b, err
	}
	is := false
	if e.Type == sqlstore.Put {
		if is, err = s.sel.matches(e.Entry); err != nil {
			return b, err
		}
	}
	switch {
	case is && was:
		return s.enc.append(b, watch.Modified, e.Entry)
	case is:
		return s.enc.append(b, watch.Added, e.Entry)
	case was && e.Type == sqlstore.Delete:
		return s.enc.append(b, watch.Deleted, e.Entry)
	case was:
		return s.enc.append(b, watch.Deleted, left(e))
	}
	return b, nil
}

type leftKey struct{}

// left is what watchers see of an object that left their selection: its state before, at
// the revision of the change.
func left(e *sqlstore.Event) *sqlstore.Entry {
	return e.Entry.Memo(leftKey{}, func() any {
		return e.Prev.AtRevision(e.Entry.Revision)
	}).(*sqlstore.Entry)
}

func (s *watching) writeInitial(out sink) error {
	b := s.enc.buffer()
	var err error
	for _, e := range s.initial {
		if b, err = s.enc.append(b, watch.Added, e); err != nil {
			s.writeError(out, err)
			return err
		}
		if len(b) >= chunk {
			if _, err := out.Write(b); err != nil {
				return errGone
			}
			b = b[:0]
		}
	}
	if len(b) > 0 {
		if _, err := out.Write(b); err != nil {
			return errGone
		}
	}
	s.enc.release(b)
	if s.markEnd {
		return s.writeBookmark(out, map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	if len(s.initial) > 0 {
		out.Flush()
	}
	return nil
}

func (s *watching) writeBookmark(out sink, annotations map[string]string) error {
	b, err := s.enc.bookmark(s.through, annotations)
	if err != nil {
		return err
	}
	if _, err := out.Write(b); err != nil {
		return errGone
	}
	out.Flush()
	return nil
}

// writeError ends a stream with an ERROR event, as the status is sent already.
func (s *watching) writeError(out sink, err error) {
	if stderrors.Is(err, errGone) || s.q.r.Context().Err() != nil || stderrors.Is(err, sqlstore.ErrClosed) {
		return
	}
	if stderrors.Is(err, sqlstore.ErrCompacted) {
		err = errors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", s.through, s.q.api.store.Floor()))
	}
	if b, err := s.enc.failure(statusOf(err)); err == nil {
		out.Write(b)
		out.Flush()
	}
}

// bookmarks says when to send one: every so often, and just before the end.
type bookmarks struct {
	c     <-chan time.Time
	timer *time.Timer
	every time.Duration
	end   time.Time // of the last bookmark; zero once it is sent
}

func newBookmarks(on bool, every, timeout time.Duration) *bookmarks {
	if !on {
		return &bookmarks{}
	}
	m := &bookmarks{every: every, end: time.Now().Add(timeout - bookmarkBeforeEnd)}
	m.timer = time.NewTimer(m.pause())
	m.c = m.timer.C
	return m
}

// pause until the next bookmark, spread a little so that watches don't write in step.
func (m *bookmarks) pause() time.Duration {
	p := m.every - m.every/4 + time.Duration(rand.Int64N(int64(m.every/4)+1))
	if left := time.Until(m.end); left > 0 && left < p {
		return left
	}
	return p
}

func (m *bookmarks) next() { m.timer.Reset(m.pause()) }

func (m *bookmarks) stop() {
	if m.timer != nil {
		m.timer.Stop()
	}
}
