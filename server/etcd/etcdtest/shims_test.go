package etcdtest_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/plinth-io/plinth/server/etcd/etcdtest"
)

// These are the faults that servers in etcd's place are known for, one test each.

// shimVariable is HOST:PORT of a server that is tested in plinth's place, to see which of the faults
// it has. It is the same one for all tests, so that each is best run on a server of its own.
const shimVariable = "PLINTH_TEST_ETCD_SHIM"

// shim runs test with a client of plinth on each dialect.
func shim(t *testing.T, test func(*testing.T, context.Context, *clientv3.Client)) {
	t.Helper()
	each := eachEndpoint
	if other := os.Getenv(shimVariable); other != "" {
		each = func(t *testing.T, test func(*testing.T, endpoint)) {
			test(t, func(testing.TB) string { return other })
		}
	}
	each(t, func(t *testing.T, plinth endpoint) {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + plinth(t)}, DialTimeout: etcdtest.Patience})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		ctx, cancel := context.WithTimeout(t.Context(), etcdtest.Patience)
		defer cancel()
		test(t, ctx, client)
	})
}

func putKey(t *testing.T, ctx context.Context, c *clientv3.Client, key, value string, o ...clientv3.OpOption) int64 {
	t.Helper()
	r, err := c.Put(ctx, key, value, o...)
	if err != nil {
		t.Fatal(err)
	}
	return r.Header.Revision
}

// TestShimRevisionZero: no answer has revision 0, also of an empty key space, of a failed compare and
// of a range without keys. Clients take 0 for "the newest" and would watch from there.
func TestShimRevisionZero(t *testing.T) {
	shim(t, func(t *testing.T, ctx context.Context, c *clientv3.Client) {
		get, err := c.Get(ctx, "none")
		if err != nil || get.Header.Revision != 1 {
			t.Errorf("empty: %v, %v; want revision 1", get, err)
		}
		txn, err := c.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision("none"), "=", 7)).Then(clientv3.OpPut("none", "")).Else(clientv3.OpGet("none")).Commit()
		if err != nil || txn.Header.Revision != 1 || txn.Responses[0].GetResponseRange().Header.GetRevision() < 0 {
			t.Errorf("failed compare: %v, %v; want revision 1", txn, err)
		}
		revision := putKey(t, ctx, c, "a", "1")
		if del, err := c.Delete(ctx, "none"); err != nil || del.Header.Revision != revision {
			t.Errorf("delete of nothing: %v, %v; want revision %d", del, err, revision)
		}
		if list, err := c.Get(ctx, "none/", clientv3.WithPrefix()); err != nil || list.Header.Revision != revision {
			t.Errorf("empty list: %v, %v; want revision %d", list, err, revision)
		}
	})
}

// TestShimProgressAheadOfEvents: a watch that is told progress to a revision has had all events to it.
func TestShimProgressAheadOfEvents(t *testing.T) {
	shim(t, func(t *testing.T, ctx context.Context, c *clientv3.Client) {
		const writes = 300
		ctx = clientv3.WithRequireLeader(ctx)
		first := putKey(t, ctx, c, "k", "first")
		watch := c.Watch(ctx, "k", clientv3.WithRev(first+1))
		g, writing := errgroup.WithContext(ctx)
		g.Go(func() error {
			for i := range writes {
				if _, err := c.Put(writing, "k", fmt.Sprint(i)); err != nil {
					return err
				}
				if err := c.RequestProgress(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		var reported, seen int64
		for r := range watch {
			if err := r.Err(); err != nil {
				t.Fatal(err)
			}
			if r.IsProgressNotify() {
				reported = max(reported, r.Header.Revision)
				if reported > seen && reported > first {
					t.Fatalf("progress to %d, and events only to %d", reported, seen)
				}
			}
			for _, e := range r.Events {
				if e.Kv.ModRevision != max(seen, first)+1 || e.Kv.ModRevision <= reported {
					t.Fatalf("event at %d after %d and progress to %d", e.Kv.ModRevision, seen, reported)
				}
				seen = e.Kv.ModRevision
			}
			if seen == first+writes && reported == seen {
				break
			}
			if seen == first+writes {
				if err := c.RequestProgress(ctx); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestShimHeaderEchoesAskedRevision: the header has the newest revision, whatever revision is read.
func TestShimHeaderEchoesAskedRevision(t *testing.T) {
	shim(t, func(t *testing.T, ctx context.Context, c *clientv3.Client) {
		old := putKey(t, ctx, c, "a", "1")
		newest := putKey(t, ctx, c, "a", "2")
		for _, o := range [][]clientv3.OpOption{nil, {clientv3.WithPrefix()}, {clientv3.WithPrefix(), clientv3.WithLimit(1)}, {clientv3.WithCountOnly()}} {
			r, err := c.Get(ctx, "a", append(o, clientv3.WithRev(old))...)
			if err != nil || r.Header.Revision != newest || r.Count != 1 || len(r.Kvs) == 1 && string(r.Kvs[0].Value) != "1" {
				t.Errorf("%d options: %v, %v; want the header at %d and the value of %d", len(o), r, err, newest, old)
			}
		}
	})
}

// TestShimContinueAtAnotherRevision: the pages of a list at one revision are that revision's, whatever is written meanwhile.
func TestShimContinueAtAnotherRevision(t *testing.T) {
	shim(t, func(t *testing.T, ctx context.Context, c *clientv3.Client) {
		for i := range 20 {
			putKey(t, ctx, c, fmt.Sprintf("list/%02d", i), "before")
		}
		r, err := c.Get(ctx, "list/", clientv3.WithPrefix(), clientv3.WithLimit(3))
		if err != nil {
			t.Fatal(err)
		}
		revision, n := r.Header.Revision, len(r.Kvs)
		for page := 0; r.More; page++ {
			putKey(t, ctx, c, fmt.Sprintf("list/%02d", 19-page), "after")
			putKey(t, ctx, c, fmt.Sprintf("list/%02d/new", 19-page), "after")
			if _, err := c.Delete(ctx, fmt.Sprintf("list/%02d", 18-2*page)); err != nil {
				t.Fatal(err)
			}
			last := string(r.Kvs[len(r.Kvs)-1].Key)
			if r, err = c.Get(ctx, last+"\x00", clientv3.WithRange(clientv3.GetPrefixRangeEnd("list/")), clientv3.WithLimit(3), clientv3.WithRev(revision)); err != nil {
				t.Fatal(err)
			}
			if r.Count != int64(20-n) {
				t.Errorf("page %d counts %d, want %d", page, r.Count, 20-n)
			}
			for _, kv := range r.Kvs {
				if want := fmt.Sprintf("list/%02d", n); string(kv.Key) != want || string(kv.Value) != "before" || kv.ModRevision > revision {
					t.Errorf("page %d has %s=%s of %d, want %s of %d or before", page, kv.Key, kv.Value, kv.ModRevision, want, revision)
				}
				n++
			}
		}
		if n != 20 {
			t.Errorf("%d keys, want 20", n)
		}
	})
}

// TestShimCompactedAndFutureRevisions: they are errors, for reads and for watches.
func TestShimCompactedAndFutureRevisions(t *testing.T) {
	shim(t, func(t *testing.T, ctx context.Context, c *clientv3.Client) {
		var newest int64
		for i := range 10 {
			newest = putKey(t, ctx, c, "a", fmt.Sprint(i))
		}
		floor := newest - 3
		if _, err := c.Compact(ctx, floor, clientv3.WithCompactPhysical()); err != nil {
			t.Fatal(err)
		}
		for revision, want := range map[int64]error{floor - 1: rpctypes.ErrCompacted, floor: nil, newest: nil, newest + 1: rpctypes.ErrFutureRev} {
			for _, o := range [][]clientv3.OpOption{nil, {clientv3.WithPrefix()}, {clientv3.WithCountOnly()}, {clientv3.WithSerializable()}} {
				if _, err := c.Get(ctx, "a", append(o, clientv3.WithRev(revision))...); err != want {
					t.Errorf("get at %d of %d to %d: %v, want %v", revision, floor, newest, err, want)
				}
			}
		}
		if _, err := c.Compact(ctx, floor); err != rpctypes.ErrCompacted {
			t.Errorf("compact again: %v", err)
		}
		if _, err := c.Compact(ctx, newest+1); err != rpctypes.ErrFutureRev {
			t.Errorf("compact the future: %v", err)
		}
		watching, stop := context.WithCancel(ctx)
		defer stop()
		r := <-c.Watch(watching, "a", clientv3.WithRev(floor-1))
		if r.Err() != rpctypes.ErrCompacted || r.CompactRevision != floor {
			t.Errorf("watch from %d: %v, compacted %d; want %v, %d", floor-1, r.Err(), r.CompactRevision, rpctypes.ErrCompacted, floor)
		}
		// A watch from the future is told what happens from then on, and nothing before.
		future := c.Watch(watching, "a", clientv3.WithRev(newest+2))
		putKey(t, ctx, c, "a", "before")
		at := putKey(t, ctx, c, "a", "then")
		if r := <-future; len(r.Events) != 1 || r.Events[0].Kv.ModRevision != at {
			t.Errorf("watch from %d: %v", newest+2, r)
		}
	})
}

// TestShimLeasesAreNotTimesToLive: leases of the same time are different ones. A lease's keys are deleted
// when it ends, and those of others are not.
func TestShimLeasesAreNotTimesToLive(t *testing.T) {
	shim(t, func(t *testing.T, ctx context.Context, c *clientv3.Client) {
		a, err := c.Grant(ctx, 3600)
		if err != nil {
			t.Fatal(err)
		}
		b, err := c.Grant(ctx, 3600)
		if err != nil || a.ID == b.ID || a.ID == 3600 {
			t.Fatalf("two leases of the same time: %d and %d, %v", a.ID, b.ID, err)
		}
		putKey(t, ctx, c, "a", "", clientv3.WithLease(a.ID))
		putKey(t, ctx, c, "b", "", clientv3.WithLease(b.ID))
		revoked := c.Watch(ctx, "", clientv3.WithPrefix())
		if _, err := c.Revoke(ctx, a.ID); err != nil {
			t.Fatal(err)
		}
		r := <-revoked
		if len(r.Events) != 1 || r.Events[0].Type != clientv3.EventTypeDelete || string(r.Events[0].Kv.Key) != "a" {
			t.Errorf("after the end of a's lease: %v", r.Events)
		}
		if got, err := c.Get(ctx, "b"); err != nil || got.Count != 1 || got.Kvs[0].Lease != int64(b.ID) {
			t.Errorf("b: %v, %v", got, err)
		}
		if _, err := c.Put(ctx, "c", "", clientv3.WithLease(a.ID)); err != rpctypes.ErrLeaseNotFound {
			t.Errorf("put with a lease that is gone: %v", err)
		}
	})
}

// TestShimEmptyVersion: kube-apiserver trusts progress only if Status has the version of an etcd
// that tells progress rightly.
func TestShimEmptyVersion(t *testing.T) {
	shim(t, func(t *testing.T, ctx context.Context, c *clientv3.Client) {
		r, err := c.Status(ctx, c.Endpoints()[0])
		if err != nil || r.Version != "3.7.3" || r.Leader != r.Header.MemberId || r.DbSize <= 0 {
			t.Errorf("status: %v, %v", r, err)
		}
	})
}

// TestShimOrderAndGaps: revisions of concurrent writers go up by one, a watch has them in this
// order, and a client that was answered finds its write in every later read.
func TestShimOrderAndGaps(t *testing.T) {
	shim(t, func(t *testing.T, ctx context.Context, c *clientv3.Client) {
		const writers, writes = 16, 40
		first := putKey(t, ctx, c, "start", "")
		watch := c.Watch(ctx, "w/", clientv3.WithPrefix(), clientv3.WithRev(first+1))
		var mu sync.Mutex
		var revisions []int64
		g, writing := errgroup.WithContext(ctx)
		for w := range writers {
			g.Go(func() error {
				for i := range writes {
					key := fmt.Sprintf("w/%d", w)
					r, err := c.Put(writing, key, fmt.Sprint(i))
					if err != nil {
						return err
					}
					got, err := c.Get(writing, key)
					if err != nil || len(got.Kvs) != 1 || got.Kvs[0].ModRevision != r.Header.Revision {
						return fmt.Errorf("%s was written at %d; read %v, %v", key, r.Header.Revision, got, err)
					}
					mu.Lock()
					revisions = append(revisions, r.Header.Revision)
					mu.Unlock()
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		slices.Sort(revisions)
		next := first + 1
		for _, r := range revisions {
			if r != next {
				t.Fatalf("revision %d, want %d", r, next)
			}
			next++
		}
		seen := first
		for seen < next-1 {
			r := <-watch
			if r.Err() != nil || len(r.Events) == 0 {
				t.Fatalf("watch: %v", r)
			}
			for _, e := range r.Events {
				if e.Kv.ModRevision != seen+1 {
					t.Fatalf("event at %d after %d", e.Kv.ModRevision, seen)
				}
				seen = e.Kv.ModRevision
			}
		}
	})
}

// TestShimWatchesHaveNoTimeToLive: a watch without events, and one of a lease's key, stay.
func TestShimWatchesHaveNoTimeToLive(t *testing.T) {
	shim(t, func(t *testing.T, ctx context.Context, c *clientv3.Client) {
		w := pb.NewWatchClient(c.ActiveConnection())
		s, err := w.Watch(ctx)
		if err != nil {
			t.Fatal(err)
		}
		create := &pb.WatchCreateRequest{Key: []byte("k")}
		if err := s.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}}); err != nil {
			t.Fatal(err)
		}
		if r, err := s.Recv(); err != nil || !r.Created {
			t.Fatalf("%v, %v", r, err)
		}
		lease, err := c.Grant(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		granted := time.Now()
		put := putKey(t, ctx, c, "k", "v", clientv3.WithLease(lease.ID))
		for i, want := range []int64{put, put + 1} {
			r, err := s.Recv()
			if err != nil || r.Canceled || len(r.Events) != 1 || r.Events[0].Kv.ModRevision != want {
				t.Fatalf("answer %d: %v, %v; want one event at %d", i, r, err, want)
			}
		}
		if passed := time.Since(granted); passed < time.Duration(lease.TTL-1)*time.Second {
			t.Errorf("the lease of %d seconds ended after %v", lease.TTL, passed)
		}
		after := putKey(t, ctx, c, "k", "again")
		if r, err := s.Recv(); err != nil || len(r.Events) != 1 || r.Events[0].Kv.ModRevision != after {
			t.Errorf("%v, %v; want one event at %d", r, err, after)
		}
	})
}
