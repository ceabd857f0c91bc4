package sqlstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// pingEvery is how often a shared database is asked for its head when nothing else
// does, so that a lost hint or a database that went away is noticed on an idle server.
const pingEvery = 5 * time.Second

// headReader asks the database for its head, once for all readers that wait.
type headReader struct {
	*shared
	state  *state
	hints  *hints
	lag    *lag
	health *health

	wake chan struct{} // has a token when next is wanted

	mu       sync.Mutex
	next     *headRead // the query for callers that came after the one in flight began
	unknown  int       // commits with unknown outcome, after which the process does not know its head
	resolved int       // how many of these have an outcome that was read since
}

type headRead struct {
	done chan struct{} // closed when head and err are set
	head changelog.Head
	err  error
}

func (h *headReader) init() {
	h.wake = make(chan struct{}, 1)
	h.next = &headRead{done: make(chan struct{})}
}

func (h *headReader) sync(ctx context.Context) (int64, error) {
	if h.log.Exclusive() && !h.hasUnknown() {
		return h.state.applied.Load(), nil
	}
	return h.syncToHead(ctx)
}

// syncOwn waits until reads see what this process has committed, if the log is exclusive: queries of such a log tell of a commit a
// moment before reads do, and sync, which does not ask it, does not wait for that.
func (h *headReader) syncOwn(ctx context.Context) error {
	if !h.log.Exclusive() {
		return nil
	}
	_, err := h.syncToHead(ctx)
	return err
}

func (h *headReader) syncToHead(ctx context.Context) (int64, error) {
	head, err := h.askHead(ctx)
	if err != nil {
		return 0, err
	}
	// A head that the database has lost, as it may when it is killed, never comes: then the present
	// one has everything.
	for want := head.Revision; !h.waitForTail(ctx, want); want = min(want, head.Revision) {
		if err := ctx.Err(); err != nil {
			return 0, fmt.Errorf("catch up with the log: %w: %w", changelog.ErrUnavailable, err)
		}
		if head, err = h.askHead(ctx); err != nil {
			return 0, err
		}
	}
	return h.state.applied.Load(), nil
}

// askHead waits for a query that begins after the call.
func (h *headReader) askHead(ctx context.Context) (changelog.Head, error) {
	h.mu.Lock()
	r := h.next
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
	select {
	case <-r.done:
		return r.head, r.err
	case <-h.stop:
		return changelog.Head{}, changelog.ErrClosed
	case <-ctx.Done():
		return changelog.Head{}, fmt.Errorf("read head: %w", deadlineError(ctx, changelog.ErrUnavailable))
	}
}

// addUnknown makes the next Sync of an exclusive log read its head too.
func (h *headReader) addUnknown() {
	h.mu.Lock()
	h.unknown++
	h.mu.Unlock()
}

func (h *headReader) hasUnknown() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unknown > h.resolved
}

// resolve notes that the outcomes of the first unknown commits were read.
func (h *headReader) resolve(unknown int) {
	h.mu.Lock()
	h.resolved = unknown
	h.mu.Unlock()
}

// begin starts a query for all callers that wait now.
func (h *headReader) begin() (r *headRead, unknown int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r, unknown = h.next, h.unknown
	h.next = &headRead{done: make(chan struct{})}
	return r, unknown
}

func (h *headReader) run() {
	for {
		select {
		case <-h.wake:
		case <-h.ping():
		case <-h.stop:
			return
		}
		h.readHead()
	}
}

// ping fires when the head should be read though no caller asks for it.
func (h *headReader) ping() <-chan time.Time {
	switch {
	case h.health.readFails():
		return time.After(probeEvery)
	case h.log.Exclusive():
		return nil
	default:
		return time.After(pingEvery)
	}
}

func (h *headReader) readHead() {
	r, unknown := h.begin()
	h.stats.headReads.Add(1)
	begun := time.Now()
	r.head, r.err = h.boundedHead()
	h.stats.headNanos.Add(int64(time.Since(begun)))
	h.health.read(r.err)
	h.hints.noticeSetBack(r.err)
	switch {
	case r.err != nil:
		h.lag.begins()
	case r.head.Revision > h.state.applied.Load():
		h.state.raiseFloor(r.head.Floor)
		h.hints.lookFor(r.head.Revision)
	default:
		h.state.raiseFloor(r.head.Floor)
		h.lag.ends()
	}
	if r.err == nil && h.hasUnknown() && h.waitForTail(h.ctx, r.head.Revision) {
		h.resolve(unknown)
	}
	close(r.done)
}

// waitForTail says whether the tail reaches revision within QueryTimeout. It must not wait
// for ever: callers of Sync wait for the next head meanwhile.
func (h *headReader) waitForTail(ctx context.Context, revision int64) bool {
	ctx, cancel := context.WithTimeout(ctx, h.o.QueryTimeout)
	defer cancel()
	return h.state.wait(ctx, revision) == nil
}
