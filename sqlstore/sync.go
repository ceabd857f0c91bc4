package sqlstore

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// pingEvery is how often a shared database is asked for its head when nothing else
// does, so that a lost hint or a database that went away is noticed on an idle server.
const pingEvery = 5 * time.Second

// headReader asks the database for its head, once for all readers that wait.
type headReader struct {
	wake chan struct{} // has a token when next is wanted

	mu    sync.Mutex
	next  *headRead // of those who came after the query in flight began
	lost  int       // commits with unknown outcome; the process does not know its own head
	found int       // of those, the ones whose outcome was read since
}

type headRead struct {
	done chan struct{} // closed when head and err are set
	head Head
	err  error
}

func (h *headReader) init() {
	h.wake = make(chan struct{}, 1)
	h.next = &headRead{done: make(chan struct{})}
}

// Sync waits until reads see everything that was committed by any process before the
// call, and returns the revision they see. ErrUnavailable if the database cannot tell.
func (s *Store) Sync(ctx context.Context) (int64, error) {
	if s.log.Exclusive() && !s.heads.isLost() {
		return s.Revision(), nil
	}
	head, err := s.askHead(ctx)
	if err != nil {
		return 0, err
	}
	if err := s.Wait(ctx, head.Revision); err != nil {
		return 0, fmt.Errorf("catch up with the log: %w: %w", ErrUnavailable, err)
	}
	return s.Revision(), nil
}

// askHead waits for a query that begins after the call.
func (s *Store) askHead(ctx context.Context) (Head, error) {
	h := &s.heads
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
	case <-s.stop:
		return Head{}, ErrClosed
	case <-ctx.Done():
		return Head{}, fmt.Errorf("read head: %w", lateIs(ctx, ErrUnavailable))
	}
}

// lose makes the next Sync of an exclusive log read its head too.
func (h *headReader) lose() {
	h.mu.Lock()
	h.lost++
	h.mu.Unlock()
}

func (h *headReader) isLost() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost > h.found
}

// find notes that the outcomes of the first lost commits were read.
func (h *headReader) find(lost int) {
	h.mu.Lock()
	h.found = lost
	h.mu.Unlock()
}

// begin starts a query for all who wait now.
func (h *headReader) begin() (r *headRead, lost int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r, lost = h.next, h.lost
	h.next = &headRead{done: make(chan struct{})}
	return r, lost
}

func (s *Store) runHeads() {
	for {
		select {
		case <-s.heads.wake:
		case <-s.ping():
		case <-s.stop:
			return
		}
		s.readHead()
	}
}

// ping fires when the head should be read without anybody asking.
func (s *Store) ping() <-chan time.Time {
	switch {
	case s.health.readFails():
		return time.After(probeEvery)
	case s.log.Exclusive():
		return nil
	default:
		return time.After(pingEvery)
	}
}

func (s *Store) readHead() {
	r, lost := s.heads.begin()
	s.stats.headReads.Add(1)
	r.head, r.err = s.boundedHead()
	s.health.read(r.err)
	if r.err == nil {
		s.raiseFloor(r.head.Floor)
		if r.head.Revision > s.Revision() {
			s.tail.nudge(r.head.Revision)
		}
	}
	if r.err == nil && s.heads.isLost() && s.catchesUp(r.head.Revision) {
		s.heads.find(lost)
	}
	close(r.done)
}

// catchesUp waits for the tail, and not for ever: others wait for the head meanwhile.
func (s *Store) catchesUp(revision int64) bool {
	ctx, cancel := context.WithTimeout(s.ctx, s.o.QueryTimeout)
	defer cancel()
	return s.Wait(ctx, revision) == nil
}
