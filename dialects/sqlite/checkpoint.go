package sqlite

import (
	"context"
	"fmt"
	"sync/atomic"
)

// SQLite copies its write-ahead log into the file by itself, within the commit that makes the log
// long enough: one commit of some hundreds takes many times as long as the others. So a goroutine
// does it before that, while commits go on.

const (
	// checkpointBytes is about how much the log takes until it is copied.
	checkpointBytes = 4 << 20
	// mostLogPages is how long the log is when a commit copies it all the same, since the goroutine
	// does not keep up.
	mostLogPages = 2000
	// commitBytes and rowBytes are about what a commit adds to the log beside the values.
	commitBytes, rowBytes = 3 << 12, 512
	// checkpointTries is how often the log is copied in a row. SQLite begins it anew when all of it
	// is copied, so that what commits have added meanwhile must be copied, too.
	checkpointTries = 3
)

// checkpointer knows when the log should be copied.
type checkpointer struct {
	added atomic.Int64  // bytes since the log was copied
	due   chan struct{} // has a token when it should be copied
}

// note counts a commit of rows with values of so many bytes.
func (c *checkpointer) note(l load) {
	if c.added.Add(l.bytes+int64(l.rows)*rowBytes+commitBytes) < checkpointBytes {
		return
	}
	select {
	case c.due <- struct{}{}:
	default:
	}
}

// runCheckpoints copies the log when it is due, until ctx ends or the log is closed.
func (l *database) runCheckpoints(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.closed:
			return
		case <-l.checkpoints.due:
		}
		l.checkpoints.added.Store(0)
		for range checkpointTries {
			if whole, err := l.checkpoint(ctx); whole || err != nil {
				break // without it a commit does it, or the next one here
			}
		}
	}
}

// checkpoint copies what is in the log into the file, as far as readers let it, and says whether
// that was all.
func (l *database) checkpoint(ctx context.Context) (whole bool, err error) {
	var busy, frames, copied int64
	if err := l.reads.QueryRowContext(ctx, `PRAGMA wal_checkpoint(PASSIVE)`).Scan(&busy, &frames, &copied); err != nil {
		return false, fmt.Errorf("checkpoint: %w", classify(err))
	}
	return busy == 0 && copied == frames, nil
}
