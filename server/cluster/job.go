package cluster

import (
	"context"
	"log/slog"
	"time"
)

// job is work that is done at a fixed interval.
type job struct {
	every  time.Duration
	atOnce bool            // also run it at the start
	due    <-chan struct{} // also run it when this channel has a value; nil: never
	do     func(context.Context) error
	failed string // what the log says when do begins to fail
}

// run does the job until ctx ends.
func (j *job) run(ctx context.Context, logger *slog.Logger) {
	tick := time.NewTicker(j.every)
	defer tick.Stop()
	for failed, skip := false, j.atOnce; ; skip = false {
		if !skip {
			select {
			case <-tick.C:
			case <-j.due:
			case <-ctx.Done():
				return
			}
		}
		err := j.do(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			logger.Warn(j.failed, "err", err)
		}
		failed = err != nil
	}
}
