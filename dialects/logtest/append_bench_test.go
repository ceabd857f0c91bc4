package logtest

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

var benchmarked = map[string]func(testing.TB) string{"sqlite": SQLite, "postgres": Postgres, "mariadb": MariaDB}

// BenchmarkAppend commits batches of new rows. The servers do not sync (see dbserver);
// SQLite does.
func BenchmarkAppend(b *testing.B) {
	value := bytes.Repeat([]byte{'x'}, 1024)
	for name, dsn := range benchmarked {
		for _, rows := range []int{1, 100} {
			b.Run(fmt.Sprintf("%s/rows=%d", name, rows), func(b *testing.B) {
				l := openDSN(b, dsn(b))
				defer l.Close()
				batch, n := make([]changelog.Change, rows), 0
				for b.Loop() {
					for i := range batch {
						n++
						batch[i] = changelog.Change{Key: keyOf(n), Value: value}
					}
					a, err := l.Append(context.Background(), batch)
					if err != nil {
						b.Fatal(err)
					}
					l.Expect(&changelog.Witness{Revision: a.Results[rows-1].Revision, At: a.At}) // as a Store does
				}
				b.ReportMetric(float64(b.N*rows)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}

// BenchmarkRead reads from a log of 20,000 keys, one of which has changed 4,000 times.
// None of the queries but count may cost in proportion to the whole.
func BenchmarkRead(b *testing.B) {
	for name, dsn := range benchmarked {
		b.Run(name, func(b *testing.B) {
			l := log{openDSN(b, dsn(b)), b}
			defer l.Close()
			readAll(b, l)
		})
	}
}

func readAll(b *testing.B, l log) {
	const keys, changes = 20_000, 4_000
	hot := keyOf(keys / 2)
	last := fill(l, keys, changes, hot)
	head := l.head().Revision
	from, to := changelog.RangeOf("/registry/")
	ctx := context.Background()
	for what, read := range map[string]func() error{
		"state-500":          func() error { _, err := l.State(ctx, from, to, head, 500); return err },
		"state-500-past":     func() error { _, err := l.State(ctx, keyOf(1000), to, keys, 500); return err },
		"state-over-history": func() error { _, err := l.State(ctx, hot, to, head, 1); return err },
		"count":              func() error { _, err := l.Count(ctx, from, to, head); return err },
		"steps-100":          func() error { _, err := l.Steps(ctx, from, to, head-100, head, 500); return err },
		"rows-100":           func() error { _, err := l.Rows(ctx, head-100, 500); return err },
		"head":               func() error { _, err := l.Head(ctx); return err },
		"time":               func() error { _, _, err := l.Time(ctx, head/2); return err },
		"refused-append": func() error {
			_, err := l.Append(ctx, []changelog.Change{{Key: hot, Expect: last - 1}, {Key: keyOf(1), Expect: 1 << 40}})
			return err
		},
	} {
		benchmark(b, what, read)
	}
	// Last, for it takes the past away.
	benchmark(b, "compact-1000", func() error { _, err := l.Compact(ctx, head, 1000, nil); return err })
}

func benchmark(b *testing.B, name string, f func() error) {
	b.Run(name, func(b *testing.B) {
		for b.Loop() {
			if err := f(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func fill(l log, keys, changes int, hot string) (last int64) {
	value := bytes.Repeat([]byte{'x'}, 300)
	for n := 0; n < keys; n += 500 {
		batch := make([]changelog.Change, 500)
		for i := range batch {
			batch[i] = changelog.Change{Key: keyOf(n + i), Value: value}
			if batch[i].Key == hot {
				last = int64(n + i + 1)
			}
		}
		l.append(batch...)
	}
	for range changes {
		last = l.put(hot, last, "x")
	}
	return last
}
