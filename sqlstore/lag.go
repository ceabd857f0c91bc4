package sqlstore

import (
	"sync/atomic"
	"time"
)

// lag knows since when something has not been where it should be: the state at the head of the log, which
// a hint or a query has told, or the floor at the end of the history. A state that could not be looked at
// counts as behind; a floor does not, since nobody knows then whether rows have become too old.
type lag struct {
	since atomic.Int64 // Unix nanoseconds; 0: it is not behind
}

// begins notes that something may be behind, unless that is known already.
func (l *lag) begins() { l.since.CompareAndSwap(0, time.Now().UnixNano()) }

func (l *lag) ends() { l.since.Store(0) }

func (l *lag) now() time.Duration {
	since := l.since.Load()
	if since == 0 {
		return 0
	}
	return max(0, time.Since(time.Unix(0, since)))
}
