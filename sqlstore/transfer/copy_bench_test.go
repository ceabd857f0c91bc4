package transfer_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
	. "github.com/plinth-io/plinth/sqlstore/transfer"
)

// BenchmarkCopyOnline copies objects of 1 KiB from SQLite while it is served: idle, or while clients
// write as fast as they can. PLINTH_BENCH_COPY is the number of objects.
func BenchmarkCopyOnline(b *testing.B) {
	for _, d := range logtest.Dialects {
		for _, writers := range []int{0, 4} {
			b.Run(fmt.Sprintf("%s/writers=%d", d.Name, writers), func(b *testing.B) { benchmarkCopy(b, d, writers) })
		}
	}
}

func benchmarkCopy(b *testing.B, d logtest.Dialect, writers int) {
	n, err := strconv.Atoi(cmp.Or(os.Getenv("PLINTH_BENCH_COPY"), "20000"))
	if err != nil {
		b.Fatal(err)
	}
	var took, stopped time.Duration
	copies, written := 0, int64(0)
	for b.Loop() {
		b.StopTimer()
		served, wrote := servedObjects(b, n, writers)
		target := openBeside(b, d.Fresh(b))
		source := openBeside(b, served)
		before := wrote()
		b.StartTimer()
		begin := time.Now()
		copied, err := Copy(b.Context(), target, source, CopyOptions{Online: true, Place: "elsewhere"})
		if err != nil {
			b.Fatal(err)
		}
		took, stopped, copies = took+time.Since(begin), max(stopped, copied.Stopped), copies+1
		written += wrote() - before
	}
	b.ReportMetric(float64(n*copies)/took.Seconds(), "objects/s")
	b.ReportMetric(float64(stopped.Microseconds())/1000, "stopped-ms")
	b.ReportMetric(float64(written)/took.Seconds(), "writes/s")
}

// servedObjects serves n objects from a SQLite file, to which writers write until it has moved. It
// returns the DSN and what tells how many writes there were.
func servedObjects(b *testing.B, n, writers int) (dsn string, wrote func() int64) {
	b.Helper()
	dsn = logtest.SQLite(b)
	log, err := dialects.Open(b.Context(), dsn, dialects.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; i < n; {
		var batch []changelog.Change
		for ; i < n && len(batch) < 1000; i++ {
			key := fmt.Sprintf("%sns/%07d", maps, i)
			batch = append(batch, changelog.Change{Key: key, Value: kilobyte(key)})
		}
		if _, err := log.Append(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	store, err := object.Open(b.Context(), log, sqlstore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() { rewrite(b, store, n, w) })
	}
	b.Cleanup(func() {
		wg.Wait()
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	return dsn, store.Revision
}

// rewrite changes every fourth object in turn until the objects have moved.
func rewrite(b *testing.B, store *sqlstore.Store, n, first int) {
	for i := first; b.Context().Err() == nil; i = (i + 4) % n {
		key := fmt.Sprintf("%sns/%07d", maps, i)
		_, err := store.Commit(b.Context(), sqlstore.Change{Key: key, Expect: store.Get(key).Revision, Value: kilobyte(key)})
		if errors.Is(err, changelog.ErrMoved) || b.Context().Err() != nil {
			return
		}
		if err != nil {
			b.Error(err)
			return
		}
	}
}
