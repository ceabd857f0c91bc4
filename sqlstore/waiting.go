package sqlstore

import (
	"context"
	"time"
)

// A change that may wait (Change.MayWait) has no transaction begun for it before its time. It goes with
// the first batch that another change begins, or that is full.

// patience is which part of the time that a caller has left its change may wait, so that it is not given
// up just before its transaction.
const patience = 3

// latest returns when the transaction of a change must begin that may wait from now on; zero: at once.
func latest(ctx context.Context, wait time.Duration, now time.Time) time.Time {
	if end, ok := ctx.Deadline(); ok {
		wait = min(wait, end.Sub(now)/patience)
	}
	if wait <= 0 {
		return time.Time{}
	}
	return now.Add(wait)
}

// due tells whether a batch is to begin now, and if not, after which time; 0: when something comes. The
// caller holds mu.
func (c *committer) due(now time.Time) (wait time.Duration, due bool) {
	if len(c.queue) == 0 {
		return 0, false
	}
	if c.closed || c.hurried || len(c.queue) >= c.maxCount {
		return 0, true
	}
	for _, p := range c.queue {
		left := p.by.Sub(now)
		if p.by.IsZero() || left <= 0 {
			return 0, true
		}
		if wait == 0 || left < wait {
			wait = left
		}
	}
	return wait, false
}

// hurry makes no change wait from now on.
func (c *committer) hurry() {
	c.mu.Lock()
	c.hurried = true
	c.mu.Unlock()
	c.signal()
}
