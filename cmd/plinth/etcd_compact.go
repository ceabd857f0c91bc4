package main

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// The modes of compaction.
const (
	compactPeriodic = "periodic"
	compactRevision = "revision"
)

// etcdCompaction is what becomes of old versions that no client compacts.
type etcdCompaction struct {
	mode, retention string // the flags

	period    time.Duration // what mode periodic keeps; 0: all
	revisions int64         // what mode revision keeps; 0: all
}

func (c *etcdCompaction) parse() (err error) {
	switch c.mode {
	case compactRevision:
		if c.revisions, err = strconv.ParseInt(c.retention, 10, 64); err != nil || c.revisions < 0 {
			return usagef("--auto-compaction-retention: %q: write a number of revisions, or 0 for no compaction", c.retention)
		}
	case compactPeriodic:
		if c.period, err = parseHours(c.retention); err != nil || c.period < 0 {
			return usagef("--auto-compaction-retention: %q: write a duration such as 8h, a number of hours, or 0 for no compaction", c.retention)
		}
	default:
		return usagef("--auto-compaction-mode: %q: write periodic or revision", c.mode)
	}
	return nil
}

// parseHours reads a duration, where a number without a unit is of hours.
func parseHours(text string) (time.Duration, error) {
	if hours, err := strconv.ParseInt(text, 10, 32); err == nil {
		return time.Duration(hours) * time.Hour, nil
	}
	return time.ParseDuration(text)
}

// sample is the revision of a moment.
type sample struct {
	at       time.Time
	revision int64
}

const (
	revisionEvery   = 5 * time.Minute // as etcd has it
	longestPeriod   = time.Hour       // between two compactions of mode periodic
	samplesOfPeriod = 10
)

// run compacts until ctx ends.
func (c *etcdCompaction) run(ctx context.Context, store *sqlstore.Store, logger *slog.Logger) {
	every := revisionEvery
	if c.mode == compactPeriodic {
		every = min(c.period, longestPeriod) / samplesOfPeriod
	}
	if c.period == 0 && c.revisions == 0 {
		return
	}
	tick := time.NewTicker(max(every, time.Second))
	defer tick.Stop()
	var past []sample
	for {
		revision, _ := changelog.Split(store.Revision())
		through := revision - c.revisions
		if c.mode == compactPeriodic {
			past = append(past, sample{time.Now(), revision})
			past, through = c.due(past, time.Now())
		}
		c.compact(ctx, store, logger, through)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// due returns the samples that are still needed, and the newest revision that is old enough to be
// compacted, 0 if none is.
func (c *etcdCompaction) due(past []sample, now time.Time) (rest []sample, through int64) {
	for len(past) > 0 && now.Sub(past[0].at) >= c.period {
		through, past = past[0].revision, past[1:]
	}
	return past, through
}

func (c *etcdCompaction) compact(ctx context.Context, store *sqlstore.Store, logger *slog.Logger, through int64) {
	if floor, _ := changelog.Split(store.Floor()); through <= max(floor, 1) {
		return
	}
	if _, err := store.Keys().CutTo(ctx, through, false); err != nil {
		logger.Warn("compaction failed; it is tried again", "revision", through, "err", err)
		return
	}
	logger.Debug("compacted", "revision", through)
}
