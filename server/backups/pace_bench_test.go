package backups

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/storetest"
)

// BenchmarkWriters says by how much writers are slower while backups are made of a SQLite database of
// 200 MB. Times with and without take turns, so that a busy machine counts on both sides.
func BenchmarkWriters(b *testing.B) {
	for _, writers := range []int{1, 16} {
		for _, paced := range []bool{true, false} {
			b.Run(fmt.Sprintf("writers=%d/paced=%v", writers, paced), func(b *testing.B) { compare(b, writers, paced) })
		}
	}
}

func compare(b *testing.B, writers int, paced bool) {
	store := storetest.Open(b, "sqlite://"+filepath.Join(b.TempDir(), "plinth.db"), sqlstore.Options{})
	pad := strings.Repeat("some text that is not quite the same again and again; ", 40)
	storetest.PutMany(b, 100_000, func(i int) (*sqlstore.Entry, error) { return put(b.Context(), store, fmt.Sprintf("old%06d", i), pad) })
	backups := New(Config{Source: store.Source(), Revision: store.Revision, Logger: slog.New(slog.DiscardHandler)})
	var written atomic.Int64
	ctx, cancel := context.WithCancel(b.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for n := range writers {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if _, err := put(b.Context(), store, fmt.Sprintf("new%d-%d", n, i%100), pad[:500]); err != nil {
					b.Error(err)
					return
				}
				written.Add(1)
			}
		})
	}
	const window = 1500 * time.Millisecond
	var alone, beside, copied int64
	for b.Loop() {
		for range 4 {
			before := written.Load()
			time.Sleep(window)
			alone += written.Load() - before
			before = written.Load()
			copied += during(b, backups, paced, window)
			beside += written.Load() - before
		}
	}
	seconds := float64(b.N) * 4 * window.Seconds()
	b.ReportMetric(float64(alone)/seconds, "writes/s-alone")
	b.ReportMetric(float64(beside)/seconds, "writes/s-beside")
	b.ReportMetric(100*(1-float64(beside)/float64(alone)), "%slower")
	b.ReportMetric(float64(copied)/seconds/1e6, "MB/s-compressed")
}

// during makes backups for a time, and returns how many bytes they have written.
func during(b *testing.B, backups *Backups, paced bool, d time.Duration) (copied int64) {
	ctx, cancel := context.WithTimeout(b.Context(), d)
	defer cancel()
	if !paced {
		backups.config.Revision = func() int64 { return 0 } // as if nobody wrote
	}
	for ctx.Err() == nil {
		out := &counted{}
		_, err := backups.take(ctx, out, false)
		if err != nil && ctx.Err() == nil {
			b.Error(err)
		}
		copied += out.n
	}
	return copied
}

type counted struct{ n int64 }

func (c *counted) Write(p []byte) (int, error) { c.n += int64(len(p)); return len(p), nil }

func put(ctx context.Context, store *sqlstore.Store, name, text string) (*sqlstore.Entry, error) {
	value := fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":"default"},"data":{"a":%q}}`, name, text)
	return storetest.Put(ctx, store, "/registry/core/configmaps/default/"+name, value)
}
