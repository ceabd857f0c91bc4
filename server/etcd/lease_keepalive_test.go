package etcd

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/plinth-io/plinth/dialects/logtest"
)

// keepAlive sends the ids on one stream, closes it, and returns the seconds answered, in order.
func (m *endpoint) keepAlive(t testing.TB, ids ...int64) (ttls []int64) {
	t.Helper()
	stream, err := m.lease.LeaseKeepAlive(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		r, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if r.ID != id || r.Header.Revision > m.revision() {
			t.Errorf("answer %v, want one for %d", r, id)
		}
		ttls = append(ttls, r.TTL)
	}
	if r, err := stream.Recv(); err == nil {
		t.Errorf("one more answer: %v", r)
	}
	return ttls
}

func TestLeaseKeepAlive(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		m := serveOn(t, d.Fresh(t), false, Options{})
		m.grant(t, 1, 100)
		m.grant(t, 2, 200)
		before, _, err := m.store.Keys().Leases(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond) // so that the clock of leases goes on
		if got := m.keepAlive(t, 2, 9, 1, 2, 0, 1); !slices.Equal(got, []int64{200, 0, 100, 200, 0, 100}) {
			t.Errorf("keep alive: %v", got)
		}
		after, _, err := m.store.Keys().Leases(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range after {
			if after[i].Expires <= before[i].Expires {
				t.Errorf("lease %d expires at %d, before it was kept alive at %d", after[i].ID, after[i].Expires, before[i].Expires)
			}
		}
	})
}

// A lease that has expired is not kept alive, and whoever is told so does not see its keys, even if
// no lessor has come yet.
func TestLeaseKeepAliveExpired(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		m := serveOn(t, d.Fresh(t), false, Options{})
		m.grant(t, 1, 2)
		m.grant(t, 2, 600)
		m.put(t, "a", "x", 1)
		m.put(t, "b", "x", 2)
		eventually(t, "expired", func() bool {
			ids, _, err := m.store.Keys().Expired(t.Context(), 10)
			return err == nil && len(ids) == 1
		})
		if got := m.keepAlive(t, 2, 1); !slices.Equal(got, []int64{600, 0}) {
			t.Errorf("keep alive: %v", got)
		}
		if got := m.keys(t); !slices.Equal(got, []string{"b"}) {
			t.Errorf("keys: %q", got)
		}
		if got := m.left(t, 1); got.TTL != -1 {
			t.Errorf("the lease that has expired: %v", got)
		}
	})
}

// While a statement runs, the leases of all callers are collected for the next one.
func TestRenewalsTogether(t *testing.T) {
	var r renewals
	r.init()
	first, made := r.join([]int64{1})
	if !made {
		t.Fatal("the first caller is to run nothing")
	}
	r.begin(first)
	var second *renewal
	for id := range int64(50) {
		n, made := r.join([]int64{id, id})
		if made != (id == 0) || n == first || id > 0 && n != second {
			t.Fatalf("caller %d: made %v", id, made)
		}
		second = n
	}
	if large, made := r.join(make([]int64, renewMost)); !made || large == second {
		t.Error("a statement has more leases than it should")
	}
	begun := make(chan struct{})
	go func() { r.begin(second); close(begun) }()
	select {
	case <-begun:
		t.Error("two statements run at once")
	case <-time.After(20 * time.Millisecond):
	}
	<-r.running
	<-begun
	if len(second.ids) != 100 {
		t.Errorf("%d ids of 50 callers", len(second.ids))
	}
}

// Many streams at once are each answered for their own leases.
func TestLeaseKeepAliveMany(t *testing.T) {
	m := serveOn(t, "sqlite://:memory:", false, Options{})
	const streams, leases = 8, 25
	var wg sync.WaitGroup
	for s := range int64(streams) {
		wg.Go(func() {
			for id := range int64(leases) {
				if _, err := m.Server.grant(t.Context(), leaseOf(s*leases+id+1, 100+s)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for s := range int64(streams) {
		wg.Go(func() {
			ids, want := make([]int64, leases), make([]int64, leases)
			for i := range ids {
				ids[i], want[i] = s*leases+int64(i)+1, 100+s
			}
			if got := m.keepAlive(t, ids...); !slices.Equal(got, want) {
				t.Errorf("stream %d: %v", s, got)
			}
		})
	}
	wg.Wait()
}

// A caller that gives up does not take others with it.
func TestRenewAlone(t *testing.T) {
	m := serveOn(t, "sqlite://:memory:", false, Options{})
	m.grant(t, 1, 100)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ttls, err := m.renew(ctx, []int64{1})
	if err == nil && ttls[1] != 100 {
		t.Errorf("renew: %v", ttls)
	}
	if ttls, err := m.renew(t.Context(), []int64{1}); err != nil || ttls[1] != 100 {
		t.Errorf("renew after another caller has given up: %v, %v", ttls, err)
	}
}
