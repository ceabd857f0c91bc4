package etcd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"

	"github.com/plinth-io/plinth/sqlstore"
)

func TestWatchCreate(t *testing.T) {
	s := serveWatches(t, sqlstore.Options{}, Options{})
	s.do(putting("a", "1"))
	c := s.open(t.Context())
	for _, try := range []struct {
		ask  *pb.WatchCreateRequest
		want string
	}{
		{&pb.WatchCreateRequest{Key: []byte("x")}, "0@2 created"},
		{&pb.WatchCreateRequest{Key: []byte("x"), WatchId: 1}, "1@2 created"},
		{&pb.WatchCreateRequest{Key: []byte("x")}, "2@2 created"},
		{&pb.WatchCreateRequest{Key: []byte("x"), WatchId: 3}, "3@2 created"},
		{&pb.WatchCreateRequest{Key: []byte("x"), WatchId: 4}, "4@2 created"},
		{&pb.WatchCreateRequest{Key: []byte("x")}, "5@2 created"},
		{&pb.WatchCreateRequest{Key: []byte("x"), WatchId: -7}, "-7@2 created"},
		{&pb.WatchCreateRequest{Key: []byte("x"), WatchId: 3}, "-1@2 created canceled mvcc: duplicate watch ID provided on the WatchStream"},
		{&pb.WatchCreateRequest{Key: []byte("x"), RangeEnd: []byte("a")}, "-1@2 created canceled mvcc: watcher range is empty"},
		{&pb.WatchCreateRequest{Key: []byte("x"), RangeEnd: []byte("x"), WatchId: 3}, "-1@2 created canceled mvcc: watcher range is empty"},
		{&pb.WatchCreateRequest{StartRevision: -1}, "-1@2 created canceled etcdserver: mvcc: required revision has been compacted"},
		{&pb.WatchCreateRequest{Key: []byte("x"), StartRevision: math.MaxInt64}, "6@2 created"},
		{&pb.WatchCreateRequest{Key: []byte("x"), StartRevision: 3}, "7@2 created"},
	} {
		c.create(try.ask)
		c.want(try.want)
	}
	c.cancelWatch(100) // is not answered
	c.cancelWatch(0)
	c.want("0@2 canceled")
	c.cancelWatch(0)
	c.create(&pb.WatchCreateRequest{Key: []byte("y")})
	c.want("8@2 created")
}

func TestWatchRanges(t *testing.T) {
	s := serveWatches(t, sqlstore.Options{}, Options{})
	c := s.open(t.Context())
	for _, r := range [][2]string{
		{"a", ""}, {"a", "b"}, {"b", "\x00"}, {"", "\x00"}, {"", ""}, {"", "b"}, {"\x00", "a"}, {"\xff", "\x00"},
	} {
		c.create(&pb.WatchCreateRequest{Key: []byte(r[0]), RangeEnd: []byte(r[1])})
		if r, err := c.next(); err != nil || !r.Created || r.Canceled {
			t.Fatal(r, err)
		}
	}
	c.askProgress()
	c.want("-1@1")
	for key, want := range map[string][]int64{
		"a":            {0, 1, 3, 5},
		"a\x00":        {1, 3, 5},
		"b":            {2, 3},
		"\x00":         {3, 4, 5, 6},
		"\x00\x00":     {3, 5, 6},
		"\xff\xff\xff": {2, 3, 7},
		"A":            {3, 5, 6},
	} {
		s.do(putting(key, "1"))
		var got []int64
		for range want {
			r, err := c.next()
			if err != nil {
				t.Fatal(err)
			}
			if string(r.Events[0].Kv.Key) != key {
				t.Errorf("change of %q, want %q", r.Events[0].Kv.Key, key)
			}
			got = append(got, r.WatchId)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("change of %q seen by %v, want %v", key, got, want)
		}
	}
}

// TestWatchEvents wants each revision in one response, with what was there before if that is
// asked for.
func TestWatchEvents(t *testing.T) {
	s := serveWatches(t, sqlstore.Options{}, Options{})
	s.do(putting("a", "0"))
	c := s.open(t.Context())
	c.create(&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte("c"), PrevKv: true})
	c.want("0@2 created")
	s.do(putting("a", "1"), putting("z", "1"), putting("b", "1"))
	c.want("0@3 PUT:a=1/2/3/2/0<a=0/2/2/1/0 PUT:b=1/3/3/1/0")
	s.do(putting("z", "2"))
	s.do(deleting("a"), putting("b", ""))
	c.want("0@5 DELETE:a=/0/5/0/0<a=1/2/3/2/0 PUT:b=/3/5/2/0<b=1/3/3/1/0")
	s.do(putting("a", "2"))
	c.want("0@6 PUT:a=2/6/6/1/0")

	c.create(&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte("c"), StartRevision: 5,
		Filters: []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NODELETE}})
	c.want("1@6 created", "1@6 PUT:b=/3/5/2/0 PUT:a=2/6/6/1/0")
	c.create(&pb.WatchCreateRequest{Key: []byte("a"), StartRevision: 1, PrevKv: true,
		Filters: []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NOPUT}})
	c.want("2@6 created", "2@6 DELETE:a=/0/5/0/0<a=1/2/3/2/0")
	c.cancelWatch(0)
	c.want("0@6 canceled")
	s.do(putting("b", "3"))
	c.want("1@7 PUT:b=3/3/7/3/0")
	c.cancelWatch(1)
	c.want("1@7 canceled")
	s.do(putting("a", "3"))
	s.do(deleting("a"))
	c.want("2@9 DELETE:a=/0/9/0/0<a=3/6/8/2/0")
}

// TestWatchWrittenTwice wants what was there before the transaction told as replaced, though the
// transaction has written the key before.
func TestWatchWrittenTwice(t *testing.T) {
	for _, o := range []sqlstore.Options{{}, {WindowBytes: 1, CacheBytes: 1}} {
		s := serveWatches(t, o, Options{})
		s.do(putting("a", "0"))
		s.do(putting("a", "1"), deleting("a"), putting("b", "1"), deleting("b"))
		s.do(putting("a", "2"))
		s.do(deleting("a"), putting("a", "3"), deleting("a"))
		c := s.open(t.Context())
		c.create(&pb.WatchCreateRequest{RangeEnd: []byte{0}, PrevKv: true, StartRevision: 3})
		c.want("0@5 created", "0@5 PUT:a=1/2/3/2/0<a=0/2/2/1/0 DELETE:a=/0/3/0/0<a=0/2/2/1/0 PUT:b=1/3/3/1/0 DELETE:b=/0/3/0/0"+
			" PUT:a=2/4/4/1/0 DELETE:a=/0/5/0/0<a=2/4/4/1/0 PUT:a=3/5/5/1/0 DELETE:a=/0/5/0/0<a=2/4/4/1/0")
	}
}

// TestWatchFuture wants a watch of the future to leave out what comes before.
func TestWatchFuture(t *testing.T) {
	s := serveWatches(t, sqlstore.Options{}, Options{})
	c := s.open(t.Context())
	c.create(&pb.WatchCreateRequest{Key: []byte("a"), StartRevision: 4})
	c.want("0@1 created")
	for i := 2; i < 6; i++ {
		s.do(putting("a", fmt.Sprint(i)))
	}
	var events []*mvccpb.Event
	for len(events) < 2 {
		r, err := c.next()
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, r.Events...)
	}
	for i, ev := range events {
		if ev.Kv.ModRevision != int64(i+4) {
			t.Errorf("event %d is of revision %d", i, ev.Kv.ModRevision)
		}
	}
}

// TestWatchCompacted has etcd's answers. A watch may start at the compacted revision, with all of
// its changes, but without what these replaced.
func TestWatchCompacted(t *testing.T) {
	s := serveWatches(t, sqlstore.Options{}, Options{})
	s.do(putting("a", "0"), putting("b", "0"))
	s.do(putting("b", "1"))
	s.do(deleting("b"), putting("d", "1"), putting("x", "1"), putting("a", "1"))
	s.do(putting("b", "9"))
	s.do(putting("a", "2"))
	c := s.open(t.Context())
	start := func(revision int64, filters ...pb.WatchCreateRequest_FilterType) {
		c.create(&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte("e"), StartRevision: revision, PrevKv: true, Filters: filters})
	}
	s.compact(4)
	for id, revision := range []int64{1, 2, 3} {
		start(revision)
		c.want(fmt.Sprintf("%d@6 created", id), fmt.Sprintf("%d@0 canceled compacted:4", id))
	}
	start(4)
	c.want("3@6 created", "3@6 DELETE:b=/0/4/0/0 PUT:d=1/4/4/1/0 PUT:a=1/2/4/2/0 PUT:b=9/5/5/1/0 PUT:a=2/2/6/3/0<a=1/2/4/2/0")
	start(4, pb.WatchCreateRequest_NOPUT)
	c.want("4@6 created", "4@6 DELETE:b=/0/4/0/0")
	start(4, pb.WatchCreateRequest_NODELETE)
	c.want("5@6 created", "5@6 PUT:d=1/4/4/1/0 PUT:a=1/2/4/2/0 PUT:b=9/5/5/1/0 PUT:a=2/2/6/3/0<a=1/2/4/2/0")
	start(5)
	c.want("6@6 created", "6@6 PUT:b=9/5/5/1/0 PUT:a=2/2/6/3/0<a=1/2/4/2/0")

	// The id of a lost watch is in use until the client cancels it.
	c.create(&pb.WatchCreateRequest{Key: []byte("a"), WatchId: 1})
	c.want("-1@6 created canceled mvcc: duplicate watch ID provided on the WatchStream")
	c.cancelWatch(1)
	c.want("1@6 canceled")
	c.create(&pb.WatchCreateRequest{Key: []byte("a"), WatchId: 1})
	c.want("1@6 created")

	s.compact(6)
	start(5)
	c.want("7@6 created", "7@0 canceled compacted:6")
	start(6)
	c.want("8@6 created", "8@6 PUT:a=2/2/6/3/0")
}

// TestWatchCompactedEmpty compacts the first revision, which is that of an empty store.
func TestWatchCompactedEmpty(t *testing.T) {
	s := serveWatches(t, sqlstore.Options{}, Options{})
	s.compact(1)
	c := s.open(t.Context())
	c.create(&pb.WatchCreateRequest{Key: []byte("a"), StartRevision: 1})
	c.want("0@1 created")
	c.cancelWatch(0)
	c.want("0@1 canceled")
}

// TestWatchFloorPages wants all changes of a compacted revision that is larger than a page.
func TestWatchFloorPages(t *testing.T) {
	for _, n := range []int{15, 16, 17, 3000} {
		s := serveWatches(t, sqlstore.Options{}, Options{})
		s.do(putting("a", "1"))
		writes := make([]write, n)
		for i := range writes {
			writes[i] = putting(fmt.Sprint(i), "1")
		}
		s.do(writes...)
		s.do(putting("b", "1"))
		s.compact(3)
		c := s.open(t.Context())
		c.create(&pb.WatchCreateRequest{RangeEnd: []byte{0}, StartRevision: 3})
		c.want("0@4 created")
		for events := 0; events < n+1; {
			r, err := c.next()
			if err != nil {
				t.Fatal(err)
			}
			if events += len(r.Events); events != n && events != n+1 { // a response may end with a revision
				t.Fatalf("%d events of %d", events, n+1)
			}
		}
	}
}

// TestWatchRests wants a watch without events to live on when all that it could read is compacted.
func TestWatchRests(t *testing.T) {
	s := serveWatches(t, sqlstore.Options{WindowBytes: 1}, Options{})
	c := s.open(t.Context())
	c.create(&pb.WatchCreateRequest{Key: []byte("a")})
	c.want("0@1 created")
	c.askProgress()
	c.want("-1@1")
	var last int64
	for i := range 100 {
		last = s.do(putting("b", fmt.Sprint(i)))
	}
	s.compact(last)
	s.do(putting("a", "1"))
	c.want("0@102 PUT:a=1/102/102/1/0")
}

// TestWatchFragments wants responses that are too large for one message divided only for
// those who take fragments.
func TestWatchFragments(t *testing.T) {
	s := serveWatches(t, sqlstore.Options{}, Options{MaxRequestBytes: 1000})
	half := (1000 + requestOverhead) / 2
	big := func(n int) string { return strings.Repeat("v", n) }
	s.do(putting("a", big(half)), putting("b", "1"), putting("c", "1"), putting("d", big(half-40)), putting("e", big(3*half)), putting("f", "1"))
	c := s.open(t.Context())
	c.create(&pb.WatchCreateRequest{RangeEnd: []byte{0}, StartRevision: 2, Fragment: true})
	c.want("0@2 created",
		fmt.Sprintf("0@2 fragment PUT:a=[%d]/2/2/1/0 PUT:b=1/2/2/1/0 PUT:c=1/2/2/1/0", half),
		fmt.Sprintf("0@2 fragment PUT:d=[%d]/2/2/1/0", half-40),
		fmt.Sprintf("0@2 fragment PUT:e=[%d]/2/2/1/0", 3*half),
		"0@2 PUT:f=1/2/2/1/0")
	c.create(&pb.WatchCreateRequest{RangeEnd: []byte{0}, StartRevision: 2})
	c.want("1@2 created",
		fmt.Sprintf("1@2 PUT:a=[%d]/2/2/1/0 PUT:b=1/2/2/1/0 PUT:c=1/2/2/1/0 PUT:d=[%d]/2/2/1/0 PUT:e=[%d]/2/2/1/0 PUT:f=1/2/2/1/0",
			half, half-40, 3*half))
}

// TestWatchPages wants responses to end between revisions, before they are too large, and to have all events.
func TestWatchPages(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		r := &pb.WatchResponse{Header: &pb.ResponseHeader{Revision: random.Int64()}, WatchId: random.Int64N(1000)}
		for revision := int64(0); len(r.Events) < random.IntN(30); revision += random.Int64N(2) {
			r.Events = append(r.Events, &mvccpb.Event{Kv: &mvccpb.KeyValue{ModRevision: revision, Value: make([]byte, random.IntN(400))}})
		}
		limit := 1 + random.IntN(3000)
		var events []*mvccpb.Event
		for page := range pages(r, limit) {
			if page.WatchId != r.WatchId || page.Header != r.Header || page.Fragment {
				t.Fatalf("%+v", page)
			}
			if last := len(events) - 1; last >= 0 && events[last].Kv.ModRevision == page.Events[0].Kv.ModRevision {
				t.Fatalf("revision %d is divided", page.Events[0].Kv.ModRevision)
			}
			size := 0
			for _, ev := range page.Events {
				size += proto.Size(ev)
			}
			if n := len(page.Events); size > limit && page.Events[0].Kv.ModRevision != page.Events[n-1].Kv.ModRevision {
				// It may be one revision too large, the last one, whose first event still fitted.
				of := page.Events[n-1].Kv.ModRevision
				for n > 0 && page.Events[n-1].Kv.ModRevision == of {
					n--
					size -= proto.Size(page.Events[n])
				}
				if size > limit {
					t.Fatalf("%d bytes before the last revision, limit %d", size, limit)
				}
			}
			events = append(events, page.Events...)
		}
		if !slices.Equal(events, r.Events) {
			t.Fatalf("%d events of %d", len(events), len(r.Events))
		}
	}
}

// TestFragmentsSizes compares with a plain count of bytes where a response is divided.
func TestFragmentsSizes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		r := &pb.WatchResponse{Header: &pb.ResponseHeader{Revision: random.Int64()}, WatchId: random.Int64N(1000)}
		for i := range random.IntN(12) {
			value := make([]byte, random.IntN(400))
			r.Events = append(r.Events, &mvccpb.Event{Kv: &mvccpb.KeyValue{ModRevision: int64(i), Value: value}})
		}
		limit := 1 + random.IntN(1500)
		parts := fragments(r, limit)
		var events []*mvccpb.Event
		for i, part := range parts {
			events = append(events, part.Events...)
			if last := i == len(parts)-1; part.Fragment == last {
				t.Fatalf("part %d of %d has fragment %v", i, len(parts), part.Fragment)
			}
			if len(part.Events) > 1 && proto.Size(part) >= limit {
				t.Fatalf("part of %d bytes, limit %d", proto.Size(part), limit)
			}
			if part.Fragment && len(parts) > 1 {
				more := partOf(part, append(slices.Clone(part.Events), parts[i+1].Events[0]))
				more.Fragment = true
				if proto.Size(more) < limit {
					t.Fatalf("a part ends at %d bytes though the next event fits into %d", proto.Size(part), limit)
				}
			}
		}
		if !slices.Equal(events, r.Events) {
			t.Fatal("events are not those of the response")
		}
	}
}

// TestWatchersUnderLoad lets watches start anywhere while many write, and wants each to get every
// revision of its range once, whole and in order.
func TestWatchersUnderLoad(t *testing.T) {
	for _, o := range []sqlstore.Options{{}, {WindowBytes: 1000}, {WindowBytes: 1000, CacheBytes: 1}} {
		t.Run(fmt.Sprintf("window=%d,cache=%d", o.WindowBytes, o.CacheBytes), func(t *testing.T) {
			s := serveWatches(t, o, Options{})
			const writers, rounds, watchers = 8, 40, 60
			end := int64(1 + writers*rounds)
			var wg sync.WaitGroup
			for i := range writers {
				wg.Go(func() {
					for r := range rounds {
						s.do(putting(fmt.Sprintf("k/%d", i), fmt.Sprint(r)), putting(fmt.Sprintf("l/%d", r), ""), putting(fmt.Sprintf("k/%d/x", r), "x"))
					}
				})
			}
			streams := []*watchClient{s.open(t.Context()), s.open(t.Context()), s.open(t.Context())}
			for i := range watchers {
				start := 1 + rand.Int64N(end)
				streams[i%3].create(&pb.WatchCreateRequest{Key: []byte("k"), RangeEnd: []byte("l"), StartRevision: start, PrevKv: i%2 == 0})
			}
			for _, c := range streams {
				wg.Go(func() { c.checkWhole(watchers/3, end) })
			}
			wg.Wait()
		})
	}
}

// checkWhole reads until all watches have come to the revision end. Each revision has two events.
func (c *watchClient) checkWhole(watches int, end int64) {
	next := map[int64]int64{}
	for done := 0; done < watches; {
		r, err := c.next()
		if err != nil {
			c.t.Error(err)
			return
		}
		for i, ev := range r.Events {
			revision := ev.Kv.ModRevision
			if was := next[r.WatchId]; was != 0 && revision != was {
				c.t.Errorf("watch %d got revision %d, want %d", r.WatchId, revision, was)
				return
			}
			next[r.WatchId] = revision + int64(i%2)
			if revision > r.Header.Revision {
				c.t.Errorf("revision %d in a response at %d", revision, r.Header.Revision)
			}
			if revision == end && i%2 == 1 {
				done++
			}
		}
		if len(r.Events)%2 != 0 {
			c.t.Errorf("watch %d got a part of a revision", r.WatchId)
		}
	}
}
