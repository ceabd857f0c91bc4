package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// watch is one watch of a stream. While it is behind, only its goroutine reads events, and holds reading;
// later, whoever holds sending does.
type watch struct {
	st       *watchStream
	id       int64
	from, to string
	asked    int64 // the start revision of the request; 0: from now on

	noPut, noDelete, prevKV, fragment, progress bool

	ctx    context.Context
	cancel context.CancelFunc

	// These belong to whoever reads events.
	watcher *sqlstore.Watcher
	failed  error             // why there is no watcher
	floor   int64             // the compacted revision, if the watch starts there and has not read it yet
	first   []*mvccpb.Event   // events that were read at the floor
	held    []*sqlstore.Event // events that could not be sent because their values could not be read
	through int64             // everything up to this revision was read
	caught  bool              // the last read found nothing more

	// These are guarded by sending.
	behind bool // the watch still reads old events
	gone   bool // canceled by the client
	lost   bool // its events are compacted; the id stays in use until the client cancels the watch
	quiet  bool // no event was sent since the last progress of the stream
}

// run sends events until the watch ends.
func (w *watch) run() {
	defer w.close()
	for w.ctx.Err() == nil {
		select {
		case <-w.step():
		case <-w.ctx.Done():
		}
	}
}

func (w *watch) close() {
	if w.watcher != nil {
		w.watcher.Close()
	}
	w.cancel()
}

// step sends the present events, and returns a channel that is closed when there may be more.
func (w *watch) step() <-chan struct{} {
	st := w.st
	st.sending.Lock()
	defer st.sending.Unlock()
	if !w.behind {
		return w.follow()
	}
	st.sending.Unlock()
	st.reading.Lock()
	defer st.reading.Unlock()
	events, err := w.next()
	st.sending.Lock()
	return w.deliver(events, err)
}

// follow sends the present events of a watch that is not behind. The caller must hold sending.
func (w *watch) follow() <-chan struct{} {
	events, err := w.next()
	return w.deliver(events, err)
}

// next reads events. After a transient error it can be called again, and no event is lost.
func (w *watch) next() ([]*mvccpb.Event, error) {
	events, err := w.read()
	if errors.Is(err, changelog.ErrCompacted) {
		err = &lostError{w.compacted()}
	}
	return events, err
}

func (w *watch) read() ([]*mvccpb.Event, error) {
	if w.failed != nil {
		return nil, w.failed
	}
	if err := w.readFloor(); err != nil {
		return nil, err
	}
	if len(w.held) == 0 {
		newest := w.st.s.store.Revision()
		events, through, err := w.watcher.Poll(w.ctx)
		if err != nil {
			return nil, err
		}
		w.held, w.caught = w.wanted(events), through >= newest
		w.through, _ = changelog.Split(through)
	}
	events, err := w.eventsOf(w.held)
	if err != nil {
		return nil, err
	}
	events = append(w.first, events...)
	w.first, w.held = nil, nil
	return events, nil
}

// deliver sends the result of next. The caller must hold sending.
func (w *watch) deliver(events []*mvccpb.Event, err error) <-chan struct{} {
	switch {
	case w.gone || w.lost || w.st.ctx.Err() != nil:
		return nil
	case err != nil:
		return w.fail(err)
	}
	if len(events) > 0 {
		w.quiet = false
		w.sendEvents(&pb.WatchResponse{
			Header:  w.st.s.header(w.revisionOf(events)),
			WatchId: w.id,
			Events:  events,
		})
	}
	w.behind = !w.caught
	return w.watcher.Wait()
}

// revisionOf returns the revision for the header of a response: that of the last event or, for past events,
// the revision up to which the watch has read.
func (w *watch) revisionOf(events []*mvccpb.Event) int64 {
	if w.behind {
		return w.through
	}
	return events[len(events)-1].Kv.ModRevision
}

// lostError means that events of a watch are compacted.
type lostError struct{ revision int64 }

func (e *lostError) Error() string { return fmt.Sprintf("compacted at revision %d", e.revision) }

// compacted returns the compacted revision, which another replica may have moved. It is above what the watch
// has read.
func (w *watch) compacted() int64 {
	ctx, cancel := context.WithTimeout(w.ctx, retryWatch)
	defer cancel()
	_, _ = w.st.s.store.Sync(ctx) // without the database, the known revision has to do
	revision, _ := changelog.Split(w.st.s.store.Floor())
	return max(revision, w.asked+1, w.through+1)
}

// fail ends the watch if its events are lost, and the stream if the Store is closed. Otherwise the database
// did not answer, and the watch continues later from its position.
func (w *watch) fail(err error) <-chan struct{} {
	var lost *lostError
	switch {
	case errors.As(err, &lost):
		w.lost = true
		w.cancel()
		w.st.send(&pb.WatchResponse{
			Header:          w.st.s.header(0),
			WatchId:         w.id,
			Canceled:        true,
			CompactRevision: lost.revision,
		})
		return nil
	case errors.Is(err, changelog.ErrClosed):
		w.st.cancel(toStatus(err))
		return nil
	}
	w.behind = true
	retry := make(chan struct{})
	time.AfterFunc(retryWatch, func() { close(retry) })
	return retry
}
