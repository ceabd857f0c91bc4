// Package files follows files that others replace while the server runs, such as certificates.
package files

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/util/filesystem"
)

const (
	// lookAgain is how often files are read although nothing told of a change.
	lookAgain = time.Minute
	// firstRetry is how soon a file is read again that could not be taken up. A certificate and
	// its key are two files, of which one is replaced first.
	firstRetry = time.Second
	lastRetry  = 5 * time.Second // a file that was away is not told of when it comes back
)

// Follow calls load at once and whenever one of the files may have changed, until ctx ends. load
// keeps what it has when it fails, and is called again soon. A failure that lasts for longer than
// it takes to replace two files is logged once.
func Follow(ctx context.Context, logger *slog.Logger, what string, paths []string, load func() error) {
	nudge := make(chan struct{}, 1)
	var watches sync.WaitGroup
	defer watches.Wait()
	for _, path := range paths {
		watches.Go(func() {
			filesystem.WatchUntil(ctx, lookAgain, path, func() {
				select {
				case nudge <- struct{}{}:
				default:
				}
			}, nil)
		})
	}
	f := follower{logger: logger, what: what, load: load}
	for {
		select {
		case <-ctx.Done():
			return
		case <-nudge:
		case <-f.retry: // nil: nothing failed
		}
		f.tryLoad()
	}
}

// follower remembers the failures of load.
type follower struct {
	logger *slog.Logger
	what   string
	load   func() error
	retry  <-chan time.Time

	wait  time.Duration // until the next try; 0: nothing failed
	since time.Time     // of the first failure in a row
	told  bool          // of this failure
}

func (f *follower) tryLoad() {
	begun := time.Now() // what is replaced while load runs, or the machine stands still, is news
	err := f.load()
	if err == nil {
		if f.told {
			f.logger.Info("a file that could not be used is good again", "what", f.what)
		}
		f.retry, f.wait, f.told = nil, 0, false
		return
	}
	if f.wait == 0 {
		f.since, f.wait = begun, firstRetry
	} else if begun.Sub(f.since) >= firstRetry {
		f.wait = min(2*f.wait, lastRetry)
		if !f.told {
			f.told = true
			f.logger.Error("a file has changed and cannot be used; what was read before stays in use", "what", f.what, "err", err)
		}
	}
	f.retry = time.After(f.wait)
}
