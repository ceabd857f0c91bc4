package rest

import (
	"context"
	stderrors "errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/plinth-io/plinth/sqlstore"
)

// sink is where a watch writes to: an HTTP response or a WebSocket.
type sink interface {
	Write(p []byte) (int, error)
	Flush()
}

// serve streams over HTTP until the end of the watch. Nothing that happens after the
// headers are out can be an error of the request.
func (s *watching) serve(ctx context.Context, watcher *sqlstore.Watcher, w http.ResponseWriter) {
	w.Header()["Content-Type"] = []string{s.enc.contentType()}
	w.WriteHeader(http.StatusOK)
	out := httpSink{w, http.NewResponseController(w)}
	// A client that does not read would keep the watch beyond its time. An error says that
	// the writer has no deadlines.
	_ = out.c.SetWriteDeadline(time.Now().Add(s.timeout + endGrace))
	out.Flush()
	s.run(ctx, watcher, out)
}

// endGrace is how long after a watch's time its last events may be on their way.
const endGrace = 2 * time.Second

type httpSink struct {
	http.ResponseWriter
	c *http.ResponseController
}

func (o httpSink) Flush() { o.c.Flush() }

// run is the life of a watch. It ends when the client goes, the time is over, the server
// drains, or the watcher fails.
func (s *watching) run(ctx context.Context, watcher *sqlstore.Watcher, out sink) {
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
		case <-s.q.api.draining.Done():
			return
		case <-s.q.kind.Gone:
			return
		}
	}
}

// errGone ends a watch whose client cannot be written to.
var errGone = stderrors.New("client is gone")

// pass sends what the watcher has now, and returns how many events it had.
func (s *watching) pass(ctx context.Context, watcher *sqlstore.Watcher, out sink) (int, error) {
	events, through, err := watcher.Poll(ctx)
	if err == nil {
		events, err = s.convertedEvents(events)
	}
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
		before := e.Prev.AtRevision(e.Entry.Revision)
		if _, ok := e.Prev.Recall(isConvertedKey{}); ok {
			markConverted(before)
		}
		return before
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
		err = errors.NewResourceExpired(s.tooOld())
	}
	if b, err := s.enc.failure(statusOf(err)); err == nil {
		out.Write(b)
		out.Flush()
	}
}

// tooOld is upstream's text for a start below the floor: its watch cache's, or its
// storage's where it has no cache.
func (s *watching) tooOld() string {
	if !s.q.cached() {
		return "The resourceVersion for the provided watch is too old."
	}
	return fmt.Sprintf("too old resource version: %d (%d)", s.through, s.q.api.store.Floor())
}
