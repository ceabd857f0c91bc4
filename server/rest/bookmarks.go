package rest

import (
	"math/rand/v2"
	"sync"
	"time"
)

// bookmarkBeforeEnd is how long before its end a watch sends a last bookmark.
const bookmarkBeforeEnd = 2 * time.Second

// schedule has the times of a watch: those of its bookmarks, at intervals and just before the end, and its end. One
// timer wakes the watch for all of them, through a channel that a draining server uses as well. A second channel would
// add a tenth to the cost of an event and 400 bytes to an idle watch.
type schedule struct {
	c     chan struct{} // has a token when something may be due
	timer *time.Timer
	every time.Duration // between bookmarks; 0: there are none
	next  time.Time     // bookmark
	end   time.Time
}

func newSchedule(bookmarks bool, every, timeout time.Duration) *schedule {
	t := &schedule{c: make(chan struct{}, 1), end: time.Now().Add(timeout)}
	if bookmarks {
		t.every = every
		t.plan()
	}
	t.timer = time.AfterFunc(t.pause(), t.wake)
	return t
}

// wake may be called by anyone.
func (t *schedule) wake() {
	select {
	case t.c <- struct{}{}:
	default:
	}
}

// mayBeDue tells whether a receive from c would not wait.
func (t *schedule) mayBeDue() bool { return len(t.c) > 0 }

// plan sets the time of the next bookmark, spread a little so that watches don't write in step.
func (t *schedule) plan() {
	now := time.Now()
	p := t.every - t.every/4 + time.Duration(rand.Int64N(int64(t.every/4)+1))
	if left := t.end.Add(-bookmarkBeforeEnd).Sub(now); left > 0 && left < p {
		p = left
	}
	t.next = now.Add(p)
}

// pause is the time until something is due.
func (t *schedule) pause() time.Duration {
	if t.every > 0 && t.next.Before(t.end) {
		return time.Until(t.next)
	}
	return time.Until(t.end)
}

// due tells what is due, and resets the timer. Both are due if the machine was suspended.
func (t *schedule) due() (bookmark, end bool) {
	now := time.Now()
	bookmark = t.every > 0 && !now.Before(t.next)
	end = !now.Before(t.end)
	if bookmark {
		t.plan()
	}
	if !end {
		t.timer.Reset(t.pause())
	}
	return bookmark, end
}

func (t *schedule) stop() { t.timer.Stop() }

// watches are those that a draining server wakes. The zero value is ready.
type watches struct {
	mu  sync.Mutex
	all map[*schedule]struct{}
}

func (w *watches) add(t *schedule) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[*schedule]struct{}{}
	}
	w.all[t] = struct{}{}
}

func (w *watches) remove(t *schedule) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.all, t)
}

func (w *watches) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for t := range w.all {
		t.wake()
	}
}
