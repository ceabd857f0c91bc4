package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/util/flowcontrol"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// sink is where a watch writes to: an HTTP response or a WebSocket.
type sink interface {
	Write(p []byte) (int, error)
	Flush()
	// OneEach says that each write has to be one event.
	OneEach() bool
}

// serve streams over HTTP until the end of the watch. Nothing that happens after the
// headers are out can be an error of the request.
func (s *watching) serve(ctx context.Context, watcher kind.Events, w http.ResponseWriter) {
	w.Header()["Content-Type"] = []string{s.q.out.EventsType()}
	plain := httpSink{w, http.NewResponseController(w)}
	out := sink(plain)
	if s.compress && response.CompressesWatch(s.q.r) {
		response.BeginGzip(w.Header())
		out = gzipSink{plain}
	}
	w.WriteHeader(http.StatusOK)
	// A client that does not read would keep the watch beyond its time. The error is ignored: it
	// says that the writer has no deadlines.
	_ = plain.c.SetWriteDeadline(time.Now().Add(s.timeout + endGrace))
	out.Flush()
	s.run(ctx, watcher, out)
}

// endGrace is how long after a watch's end its last events may take to be sent.
const endGrace = 5 * time.Second

type httpSink struct {
	http.ResponseWriter
	c *http.ResponseController
}

func (o httpSink) Flush()        { o.c.Flush() }
func (o httpSink) OneEach() bool { return false }

// gzipSink compresses each write by itself, so that a watch that waits for its client has no compressor in memory.
type gzipSink struct{ httpSink }

func (o gzipSink) Write(p []byte) (int, error) {
	buffer := lendBuffer(len(p))
	defer buffer.release()
	buffer.b = response.AppendGzip(buffer.b, p)
	return len(p), buffer.write(o.httpSink)
}

// run is the life of a watch. It ends when the client goes, the time is over, the server
// drains, or the watcher fails.
func (s *watching) run(ctx context.Context, watcher kind.Events, out sink) {
	if s.failed != nil {
		s.writeError(out, s.failed)
		return
	}
	if s.timeout == 0 {
		return
	}
	if err := s.writeInitial(out); err != nil {
		return
	}
	s.initial = nil
	flowcontrol.WatchInitialized(ctx)
	t := newSchedule(s.bookmarks, s.q.api.o.BookmarkEvery, s.timeout)
	defer t.stop()
	s.q.api.watches.add(t)
	defer s.q.api.watches.remove(t)
	for s.q.api.draining.Err() == nil {
		wake := watcher.Wait()
		n, err := s.pass(ctx, watcher, out)
		if err != nil {
			s.writeError(out, err)
			return
		}
		if n > 0 {
			if !t.mayBeDue() {
				continue
			}
			wake = nil // a watch that has much to send does what is due, and ends, all the same
		}
		select {
		case <-wake:
		case <-t.c:
			if !s.onTime(ctx, t, watcher, out) {
				return
			}
		case <-ctx.Done():
			return
		case <-s.q.kind.Gone():
			return
		}
	}
}

// onTime does what is due. It is false if the watch ends.
func (s *watching) onTime(ctx context.Context, t *schedule, watcher kind.Events, out sink) bool {
	bookmark, end := t.due()
	if bookmark && !end {
		if _, err := s.pass(ctx, watcher, out); err != nil { // changes that did not wake it are progress
			s.writeError(out, err)
			return false
		}
	}
	if bookmark && s.writeBookmark(out) != nil {
		return false
	}
	return !end
}

// errGone ends a watch whose client cannot be written to.
var errGone = errors.New("client is gone")

// pass sends what the watcher has now, and returns how many events it had.
func (s *watching) pass(ctx context.Context, watcher kind.Events, out sink) (int, error) {
	if s.failed != nil {
		return 0, s.failed
	}
	events, through, err := watcher.Poll(ctx)
	if err == nil {
		events, s.failed = s.q.readableEvents(events, s.sel.looksInside())
		events, err = s.convertedEvents(events)
	}
	if err != nil {
		return 0, err
	}
	if len(events) == 0 && s.failed != nil {
		return 0, s.failed
	}
	if len(events) == 0 {
		s.through = through
		return 0, nil
	}
	buffer := lendBuffer(eventsSize(events))
	defer buffer.release()
	for _, e := range events {
		if buffer.b, err = s.append(buffer.b, e); err != nil {
			return 0, err
		}
		if err := buffer.writeFull(out); err != nil {
			return 0, err
		}
	}
	s.through = through
	if err := buffer.write(out); err != nil {
		return 0, err
	}
	out.Flush()
	return len(events), nil
}

// append adds the event as this watch's selection sees it: an object that comes into the selection
// is ADDED, an object that leaves it is DELETED, whatever the change was.
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

// left is the entry that watchers get for an object that left their selection: its state before,
// at the revision of the change.
func left(e *sqlstore.Event) *sqlstore.Entry {
	return e.Entry.Memo(leftKey{}, func() any {
		before := object.AtRevision(e.Prev, e.Entry.Revision)
		if response.WasConverted(e.Prev) {
			response.MarkConverted(before)
		}
		return before
	}).(*sqlstore.Entry)
}

func (s *watching) writeInitial(out sink) error {
	if err := s.writeState(out); err != nil {
		return err
	}
	if s.markEnd {
		b, err := s.enc.initialEventsEnd(s.through)
		if err != nil {
			s.writeError(out, err)
			return err
		}
		return writeOut(out, b)
	}
	if len(s.initial) > 0 {
		out.Flush()
	}
	return nil
}

// writeState writes the state at the start as events.
func (s *watching) writeState(out sink) (err error) {
	if len(s.initial) == 0 {
		return nil
	}
	buffer := lendBuffer(entriesSize(s.initial))
	defer buffer.release()
	for e, err := range s.q.fetched(s.q.sending(), s.initial) {
		if err != nil {
			s.writeError(out, err)
			return err
		}
		if buffer.b, err = s.enc.append(buffer.b, watch.Added, e); err != nil {
			s.writeError(out, err)
			return err
		}
		if err := buffer.writeFull(out); err != nil {
			return err
		}
	}
	return buffer.write(out)
}

func (s *watching) writeBookmark(out sink) error {
	b, err := s.enc.bookmark(s.through, nil)
	if err != nil {
		return err
	}
	return writeOut(out, b)
}

// writeOut writes what the client gets at once.
func writeOut(out sink, b []byte) error {
	if _, err := out.Write(b); err != nil {
		return errGone
	}
	out.Flush()
	return nil
}

// writeError ends a stream with an ERROR event, because the HTTP status has been sent already.
func (s *watching) writeError(out sink, err error) {
	if errors.Is(err, errGone) || s.q.ctx.Err() != nil || errors.Is(err, changelog.ErrClosed) {
		return
	}
	if errors.Is(err, changelog.ErrCompacted) {
		err = apierrors.NewResourceExpired(s.tooOld())
	}
	if b, err := s.enc.failure(response.StatusOf(err)); err == nil {
		out.Write(b)
		out.Flush()
	}
}

// tooOld is upstream's text for a start below the floor: that of its watch cache, or of its
// storage for resources without one.
func (s *watching) tooOld() string {
	if !s.q.cached() {
		return "The resourceVersion for the provided watch is too old."
	}
	return fmt.Sprintf("too old resource version: %d (%d)", s.through, s.q.api.store.Floor())
}

// convertedEvents returns the events with their entries in the Kind's version. Previous states are
// converted only if the selection looks into them.
func (s *watching) convertedEvents(events []*sqlstore.Event) ([]*sqlstore.Event, error) {
	if s.q.kind.Conversion() == nil || len(events) == 0 {
		return events, nil
	}
	inside := s.sel.looksInside()
	var entries []*sqlstore.Entry
	for _, e := range events {
		entries = append(entries, e.Entry)
		if inside && e.Prev != nil {
			entries = append(entries, e.Prev)
		}
	}
	entries, err := s.q.converted(s.q.ctx, entries)
	if err != nil {
		return nil, err
	}
	out := make([]*sqlstore.Event, len(events))
	for i, e := range events {
		changed := *e
		changed.Entry, entries = entries[0], entries[1:]
		if inside && e.Prev != nil {
			changed.Prev, entries = entries[0], entries[1:]
		}
		out[i] = &changed
	}
	return out, nil
}
