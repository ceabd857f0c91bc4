package logtest

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// BenchmarkCompact compacts 4,000 changes of 100 objects of 1 KiB, in the steps of a Store: without rules, with a rule by
// which all old versions move to past, and with their bytes counted, too, as where --keep-size bounds them.
func BenchmarkCompact(b *testing.B) {
	for name, dsn := range benchmarked {
		for _, kind := range []struct {
			name      string
			retention *changelog.Retention
			limit     int
			counted   bool
		}{{"none", nil, 500, false}, {"kept", daysAndSecrets, 200, false}, {"counted", daysAndSecrets, 200, true}} {
			b.Run(name+"/"+kind.name, func(b *testing.B) {
				l := log{openDSN(b, dsn(b)), b}
				defer l.Close()
				changes := &changesOfMany{last: make([]int64, 100)}
				rows, took := 0, time.Duration(0)
				for b.Loop() {
					through := changes.write(l, 40)
					if kind.counted {
						l.bound(1<<40, 1)
					}
					begin := time.Now()
					rows += int(l.compactTo(through, kind.limit, kind.retention))
					took += time.Since(begin)
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(took.Microseconds())/float64(rows), "us/row")
			})
		}
	}
}

// changesOfMany changes objects again and again.
type changesOfMany struct{ last []int64 }

// write changes each object some times, and returns the newest revision but one.
func (c *changesOfMany) write(l log, times int) (through int64) {
	value := bytes.Repeat([]byte{'x'}, 1024)
	for range times {
		batch := make([]changelog.Change, len(c.last))
		for i := range batch {
			batch[i] = changelog.Change{Key: keyOf(i), Expect: c.last[i], Value: value}
		}
		for i, r := range l.append(batch...).Results {
			c.last[i], through = r.Revision, r.Revision-1
		}
	}
	return through
}

// compactTo compacts in steps, and returns how many rows that took out of the log.
func (l log) compactTo(through int64, limit int, retention *changelog.Retention) (rows int64) {
	l.t.Helper()
	for {
		c, err := l.Compact(context.Background(), through, limit, retention)
		if err != nil {
			l.t.Fatal(err)
		}
		if rows += c.Deleted; c.Swept >= through {
			return rows
		}
	}
}
