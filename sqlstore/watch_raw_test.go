package sqlstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestWatchRange wants each revision of raw keys whole in one Poll, from the window and from the
// log, whatever the sizes of pages are.
func TestWatchRange(t *testing.T) {
	for _, window := range []int{1, 50_000, 32 << 20} {
		t.Run(fmt.Sprint(window), func(t *testing.T) {
			s := openRaw(t, fileDSN(t), Options{WindowBytes: window})
			sizes := []int{1, 3, 70, 1, 400, 2, 5000, 1, 1, 300, 300}
			for r, n := range sizes {
				do(t, s, func(tx *Tx) error {
					for i := range n {
						tx.Put(fmt.Sprintf("k%05d", i), fmt.Append(nil, r), 0)
					}
					tx.Put("other", nil, 0)
					return nil
				})
				if r%2 == 0 {
					s.Age()
				}
			}
			for start := range sizes {
				w, err := s.Keys().WatchRange("k", "l", changelog.LastID(int64(start+1)))
				if err != nil {
					t.Fatal(err)
				}
				checkWhole(t, w, sizes[start:], int64(start+2))
				w.Close()
			}
		})
	}
}

// checkWhole wants sizes[i] events of revision first+i, and Polls that end with a revision.
func checkWhole(t *testing.T, w *Watcher, sizes []int, first int64) {
	t.Helper()
	last := first + int64(len(sizes)) - 1
	got := map[int64]int{}
	complete := int64(0)
	for done := first - 1; done < last; {
		events, through, err := w.Poll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range events {
			revision, _ := changelog.Split(ev.Entry.Revision)
			if revision <= complete {
				t.Fatalf("an event of revision %d after a Poll that ended with %d", revision, complete)
			}
			got[revision]++
		}
		done, _ = changelog.Split(through)
		complete = done
	}
	for i, n := range sizes {
		if got[first+int64(i)] != n {
			t.Errorf("%d events of revision %d, want %d", got[first+int64(i)], first+int64(i), n)
		}
	}
}

// TestWatchRangeTopics wants a watch to be woken by its own keys only, where ranges allow.
func TestWatchRangeTopics(t *testing.T) {
	s := openRaw(t, "sqlite://:memory:", Options{})
	watch := func(from, to string) *Watcher {
		w, err := s.Keys().WatchRange(from, to, s.Revision())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Close)
		if _, _, err := w.Poll(t.Context()); err != nil {
			t.Fatal(err)
		}
		return w
	}
	woken := func(w *Watcher) bool {
		select {
		case <-w.Wait():
			return true
		default:
			return false
		}
	}
	for _, c := range []struct {
		from, to  string
		own, none string
	}{
		{"/a/", "/a0", "/a/x", "/ab"},
		{"key", "key\x00", "key", "kex"},
		{"\xff\x00", changelog.End, "\xff\xff", ""},
		{"", changelog.End, "x", ""},
		{"b1", "b3", "b2", "a"},
	} {
		w := watch(c.from, c.to)
		if c.none != "" {
			putRaw(t, s, c.none, "")
			if woken(w) {
				t.Errorf("a watch of [%q, %q) is woken by %q", c.from, c.to, c.none)
			}
		}
		putRaw(t, s, c.own, "")
		if !woken(w) {
			t.Errorf("a watch of [%q, %q) is not woken by %q", c.from, c.to, c.own)
		}
		if events, _, err := w.Poll(t.Context()); err != nil || len(events) != 1 || events[0].Entry.Key != c.own {
			t.Errorf("a watch of [%q, %q): %v, %v", c.from, c.to, events, err)
		}
	}
}

// TestWatchRangeLarge wants Polls of large values to be small, from the window and from the log, and each
// revision whole.
func TestWatchRangeLarge(t *testing.T) {
	const size, revisions = 300_000, 40
	for _, window := range []int{1, 64 << 20} {
		s := openRaw(t, fileDSN(t), Options{WindowBytes: window})
		for range revisions {
			do(t, s, func(tx *Tx) error {
				tx.Put("a", make([]byte, size), 0)
				tx.Put("b", make([]byte, size), 0)
				return nil
			})
		}
		w, err := s.Keys().WatchRange("", changelog.End, changelog.LastID(1))
		if err != nil {
			t.Fatal(err)
		}
		for got := 0; got < 2*revisions; {
			events, _, err := w.Poll(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(events)%2 != 0 || len(events)*size > 2<<20 {
				t.Fatalf("window %d: %d events in one Poll", window, len(events))
			}
			got += len(events)
		}
		w.Close()
	}
}

// TestWatchRangeWeight wants watches of what is only in the log to have few large values in memory: one Poll returns no
// more than is sent at once, with the values that were replaced, and few watches read at the same time.
func TestWatchRangeWeight(t *testing.T) {
	const size, revisions, watches = 100 << 10, 20, 12
	log := &countedLog{Log: openRawLog(t, fileDSN(t)), release: make(chan struct{})}
	s, err := Open(t.Context(), log, Options{WindowBytes: 1, CacheBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range revisions {
		putRaw(t, s, "k", strings.Repeat("v", size))
	}
	var all sync.WaitGroup
	for range watches {
		w, err := s.Keys().WatchRange("k", "l", 0)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		all.Go(func() {
			for seen := 0; seen < revisions; {
				events, _, err := w.Poll(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				bytes := 0
				for _, ev := range events {
					n, _ := ev.Entry.ValueBytes()
					if bytes += n; ev.Prev != nil {
						n, _ = ev.Prev.ValueBytes()
						bytes += n
					}
				}
				if bytes > PollBytes+2*size {
					t.Errorf("%d events with values of %d bytes in one Poll", len(events), bytes)
				}
				seen += len(events)
			}
		})
	}
	waitFor(t, "some watches read", func() bool { return log.reading.Load() == LogPolls })
	close(log.release)
	all.Wait()
	if most := log.most.Load(); most > LogPolls {
		t.Errorf("%d watches read from the log at once", most)
	}
}

// countedLog counts who reads changes. All wait for its release.
type countedLog struct {
	changelog.Log
	release       chan struct{}
	reading, most atomic.Int64
}

func (l *countedLog) Steps(ctx context.Context, from, to string, after, through int64, limit int) ([]changelog.Step, error) {
	n := l.reading.Add(1)
	defer l.reading.Add(-1)
	for most := l.most.Load(); n > most && !l.most.CompareAndSwap(most, n); most = l.most.Load() {
	}
	<-l.release
	return l.Log.Steps(ctx, from, to, after, through, limit)
}
