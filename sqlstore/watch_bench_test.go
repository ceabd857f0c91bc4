package sqlstore_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	_ "github.com/mattn/go-sqlite3"

	. "github.com/plinth-io/plinth/sqlstore"
)

// BenchmarkWatchFanout commits one change at a time and takes it to all watchers, of
// the whole resource or of one namespace each.
func BenchmarkWatchFanout(b *testing.B) {
	for _, c := range []struct {
		name   string
		prefix func(i int) string
	}{
		{"all", func(int) string { return maps }},
		{"namespaces", func(i int) string { return fmt.Sprintf("%sns%d/", maps, i) }},
	} {
		for _, watchers := range []int{100, 1000} {
			b.Run(fmt.Sprintf("%s/%d", c.name, watchers), func(b *testing.B) { benchmarkFanout(b, watchers, c.prefix) })
		}
	}
}

func benchmarkFanout(b *testing.B, watchers int, prefix func(int) string) {
	s := newStore(b, Options{})
	var seen atomic.Int64
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for i := range watchers {
		w, err := s.Watch(maps, prefix(i), s.Revision())
		if err != nil {
			b.Fatal(err)
		}
		wg.Go(func() {
			defer w.Close()
			for {
				events, _, err := w.Poll(context.Background())
				if err != nil {
					b.Error(err)
					return
				}
				seen.Add(int64(len(events)))
				select {
				case <-w.Wait():
				case <-stop:
					return
				}
			}
		})
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		create(b, s, fmt.Sprintf("%sns%d/%d", maps, i%watchers, i))
	}
	want := int64(b.N)
	if prefix(0) == maps {
		want *= int64(watchers)
	}
	for seen.Load() < want {
		runtime.Gosched() // the last events are on their way
	}
	b.StopTimer()
	b.ReportMetric(float64(want)/b.Elapsed().Seconds(), "events/s")
	close(stop)
	wg.Wait()
}
