package etcd

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/plinth-io/plinth/sqlstore"
)

// TestWatchProgress has etcd's answers: none without watches, none while one starts in the future
// or is lost.
func TestWatchProgress(t *testing.T) {
	s := serveWatches(t, sqlstore.Options{}, Options{})
	for i := range 5 {
		s.do(putting("b", fmt.Sprint(i)))
	}
	s.compact(4)
	c := s.open(t.Context())
	c.askProgress()
	c.create(&pb.WatchCreateRequest{Key: []byte("a")})
	c.want("0@6 created")
	c.askProgress()
	c.want("-1@6")
	s.do(putting("b", "5"))
	c.askProgress()
	c.want("-1@7")

	c.create(&pb.WatchCreateRequest{Key: []byte("a"), StartRevision: 9})
	c.want("1@7 created")
	c.askProgress()
	c.settle()
	s.do(putting("b", "6"))
	c.askProgress()
	c.settle()
	s.do(putting("b", "7"))
	c.askProgress()
	c.want("-1@9")

	c.create(&pb.WatchCreateRequest{Key: []byte("a"), StartRevision: 3})
	c.want("2@9 created", "2@0 canceled compacted:4")
	c.askProgress()
	c.settle()
	c.cancelWatch(2)
	c.want("2@9 canceled")
	c.askProgress()
	c.want("-1@9")
}

// TestWatchProgressOrder wants progress to be told only after all events through its revision, while
// many write.
func TestWatchProgressOrder(t *testing.T) {
	for _, o := range []sqlstore.Options{{}, {WindowBytes: 1000}} {
		s := serveWatches(t, o, Options{})
		c := s.open(t.Context())
		const watches, writers, rounds = 20, 8, 60
		for i := range watches {
			c.create(&pb.WatchCreateRequest{Key: fmt.Appendf(nil, "k%d", i%5)})
		}
		end := int64(1 + writers*rounds)
		var wg sync.WaitGroup
		for i := range writers {
			wg.Go(func() {
				for r := range rounds {
					s.do(putting(fmt.Sprintf("k%d", (i+r)%5), "1"))
				}
			})
		}
		asked, stop := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(asked)
			for range 200 {
				c.askProgress()
			}
			wg.Wait()
			// A watch may be behind without an event to come, and then nothing is answered.
			for tick := time.NewTicker(10 * time.Millisecond); ; {
				select {
				case <-tick.C:
					c.askProgress()
				case <-stop:
					tick.Stop()
					return
				}
			}
		}()
		seen := map[int64]int64{} // the watch's last revision
		through, created := int64(0), 0
		for through < end {
			r, err := c.next()
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case r.Created:
				created++
			case r.WatchId == noWatch:
				if created == watches {
					through = r.Header.Revision
				}
			default:
				revision := r.Events[0].Kv.ModRevision
				if revision <= through || revision <= seen[r.WatchId] {
					t.Fatalf("watch %d got revision %d after %d, after progress at %d", r.WatchId, revision, seen[r.WatchId], through)
				}
				seen[r.WatchId] = r.Events[len(r.Events)-1].Kv.ModRevision
			}
		}
		close(stop)
		<-asked
	}
}

// TestWatchProgressNotify wants quiet watches to be told how far they are, if they asked for it.
func TestWatchProgressNotify(t *testing.T) {
	s := serveWatches(t, sqlstore.Options{}, Options{WatchProgressInterval: 100 * time.Millisecond})
	c := s.open(t.Context())
	c.create(&pb.WatchCreateRequest{Key: []byte("a")})
	c.create(&pb.WatchCreateRequest{Key: []byte("b"), ProgressNotify: true})
	c.want("0@1 created", "1@1 created", "1@1", "1@1")
	s.do(putting("c", "1"))
	for {
		r, err := c.next()
		if err != nil {
			t.Fatal(err)
		}
		if tell(r) == "1@2" {
			break
		}
		if tell(r) != "1@1" {
			t.Fatal(tell(r))
		}
	}
	c.create(&pb.WatchCreateRequest{Key: []byte("b"), ProgressNotify: true, StartRevision: 4})
	for {
		r, err := c.next()
		if err != nil {
			t.Fatal(err)
		}
		if r.Created {
			break
		}
	}
	// Both are told progress only when the second has started.
	s.do(putting("c", "2"))
	s.do(putting("c", "3"))
	for {
		r, err := c.next()
		if err != nil {
			t.Fatal(err)
		}
		if r.WatchId == 2 {
			if tell(r) != "2@4" {
				t.Fatal(tell(r))
			}
			break
		}
	}
}

// TestProgressElided wants a watch that had events not to be told progress the next time.
func TestProgressElided(t *testing.T) {
	s := serveWatches(t, sqlstore.Options{}, Options{})
	c := s.open(t.Context())
	c.create(&pb.WatchCreateRequest{Key: []byte("a"), ProgressNotify: true})
	c.want("0@1 created")
	st := s.streams[0]
	st.sendQuietProgress()
	c.want("0@1")
	s.do(putting("a", "1"))
	c.want("0@2 PUT:a=1/2/2/1/0")
	st.sendQuietProgress()
	s.do(putting("b", "1"))
	st.sendQuietProgress()
	c.want("0@3")
	st.sendQuietProgress()
	c.want("0@3")
}

// TestWatchEnds tells how a stream ends.
func TestWatchEnds(t *testing.T) {
	s := serveWatches(t, sqlstore.Options{}, Options{})
	half, canceled, stopped := s.open(t.Context()), s.open(t.Context()), s.open(t.Context())
	for _, c := range []*watchClient{half, canceled, stopped} {
		c.create(&pb.WatchCreateRequest{Key: []byte("a")})
		c.want("0@1 created")
	}
	if err := half.stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	canceled.cancel()
	if _, err := canceled.next(); status.Code(err) != codes.Canceled {
		t.Error(err)
	}
	s.do(putting("a", "1"))
	half.want("0@2 PUT:a=1/2/2/1/0") // a client that asks for nothing more reads on
	stopped.want("0@2 PUT:a=1/2/2/1/0")
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*watchClient{half, stopped} {
		if _, err := c.next(); rpctypes.Error(err) != rpctypes.ErrStopped {
			t.Error(err)
		}
	}
	s.ended()
}

// TestWatchSilentClient wants a client that does not read to hold up nobody, and to cost no memory for
// what it does not read.
func TestWatchSilentClient(t *testing.T) {
	s := serveWatches(t, sqlstore.Options{WindowBytes: 1 << 20, CacheBytes: 1 << 20}, Options{})
	silent, other := s.silent(t.Context()), s.open(t.Context())
	const watches, last = 3, 301
	for range watches {
		silent.create(&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte("b")})
	}
	other.create(&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte("b")})
	other.want("0@1 created")
	value, before := strings.Repeat("v", 100_000), heap()
	for i := range last - 1 {
		s.do(putting(fmt.Sprint("a", i), value))
		other.want(fmt.Sprintf("0@%d PUT:a%d=[100000]/%d/%d/1/0", i+2, i, i+2, i+2))
	}
	if grown := int64(heap()) - int64(before); grown > 15<<20 {
		t.Errorf("memory has grown by %d bytes for a client that does not read", grown)
	}
	go silent.receive()
	next := map[int64]int64{}
	for done := 0; done < watches; {
		r, err := silent.next()
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range r.Events {
			if was := next[r.WatchId]; was != 0 && ev.Kv.ModRevision != was {
				t.Fatalf("watch %d got revision %d, want %d", r.WatchId, ev.Kv.ModRevision, was)
			}
			next[r.WatchId] = ev.Kv.ModRevision + 1
			if ev.Kv.ModRevision == last {
				done++
			}
		}
	}
	blocked := s.silent(t.Context())
	for range 20 {
		blocked.create(&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte("b"), StartRevision: 1})
	}
	s.blocked()
	s.grpc.Stop() // as Transport.Shutdown does: no watch that waits for its turn to send learns that the store is closed
	s.ended()
}

// blocked waits until the stream that was opened last has waited for its client for a while.
func (s *watchServed) blocked() {
	looks := 0
	eventually(s.t, "a stream waits for its client", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.streams) < s.opened {
			return false
		}
		if st := s.streams[s.opened-1]; st.sending.TryLock() {
			st.sending.Unlock()
			looks = 0
			return false
		}
		looks++
		return looks > 10
	})
}

// heap returns how much memory is in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestWatchLeader wants streams that require a leader to end when the database is away for long,
// and others to wait.
func TestWatchLeader(t *testing.T) {
	s := serveWatches(t, sqlstore.Options{}, Options{})
	patient := s.open(t.Context())
	strict := s.open(metadata.AppendToOutgoingContext(t.Context(), rpctypes.MetadataRequireLeaderKey, rpctypes.MetadataHasLeader))
	for _, c := range []*watchClient{patient, strict} {
		c.create(&pb.WatchCreateRequest{Key: []byte("a")})
		c.want("0@1 created")
	}
	s.away.Store(true)
	if _, err := strict.next(); rpctypes.Error(err) != rpctypes.ErrNoLeader {
		t.Error(err)
	}
	ctx := metadata.AppendToOutgoingContext(context.Background(), rpctypes.MetadataRequireLeaderKey, rpctypes.MetadataHasLeader)
	if _, err := s.open(ctx).next(); rpctypes.Error(err) != rpctypes.ErrNoLeader {
		t.Error(err)
	}
	s.away.Store(false)
	s.do(putting("a", "1"))
	patient.want("0@2 PUT:a=1/2/2/1/0")
}
