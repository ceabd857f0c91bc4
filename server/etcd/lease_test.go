package etcd

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/plinth-io/plinth/dialects/logtest"
)

func TestLeaseGrant(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		m := serveOn(t, d.Fresh(t), false, Options{})
		for _, test := range []struct{ id, ttl, granted int64 }{
			{7, 60, 60}, {8, 1, 2}, {9, 2, 2}, {10, 0, 2}, {11, -5, 2}, {-12, 3, 3}, {13, 9_000_000_000, 9_000_000_000},
		} {
			r := m.grant(t, test.id, test.ttl)
			if r.ID != test.id || r.TTL != test.granted || r.Error != "" || r.Header.Revision != 1 {
				t.Errorf("grant %d with %d: %v", test.id, test.ttl, r)
			}
		}
		selectEntries := m.grant(t, 0, 60)
		if selectEntries.ID <= 0 || selectEntries.ID == m.grant(t, 0, 60).ID {
			t.Errorf("chosen: %v", selectEntries)
		}
		_, err := m.lease.LeaseGrant(bounded(t), &pb.LeaseGrantRequest{ID: 7, TTL: 60})
		wantError(t, "grant a lease that there is", err, rpctypes.ErrGRPCLeaseExist)
		_, err = m.lease.LeaseGrant(bounded(t), &pb.LeaseGrantRequest{ID: 14, TTL: 9_000_000_001})
		wantError(t, "grant for too long", err, rpctypes.ErrGRPCLeaseTTLTooLarge)
		if got := m.left(t, 14); got.TTL != -1 {
			t.Errorf("a lease that was refused: %v", got)
		}
	})
}

func TestLeaseRevoke(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		m := serveOn(t, d.Fresh(t), false, Options{})
		m.grant(t, 7, 600)
		m.grant(t, 8, 600)
		for i, key := range []string{"c", "a", "b"} {
			m.put(t, key, "x", 7)
			m.put(t, fmt.Sprint("other", i), "x", 8)
		}
		m.put(t, "c", "moved", 8)
		r, err := m.lease.LeaseRevoke(bounded(t), &pb.LeaseRevokeRequest{ID: 7})
		if err != nil || r.Header.Revision != 9 {
			t.Fatalf("revoke: %v, %v; want revision 9", r, err)
		}
		if got := m.keys(t); !slices.Equal(got, []string{"c", "other0", "other1", "other2"}) {
			t.Errorf("keys that are left: %q", got)
		}
		_, err = m.lease.LeaseRevoke(bounded(t), &pb.LeaseRevokeRequest{ID: 7})
		wantError(t, "revoke twice", err, rpctypes.ErrGRPCLeaseNotFound)
		m.grant(t, 7, 600)
		if r, err := m.lease.LeaseRevoke(bounded(t), &pb.LeaseRevokeRequest{ID: 7}); err != nil || r.Header.Revision != 9 {
			t.Errorf("revoke without keys: %v, %v; want revision 9", r, err)
		}
	})
}

func TestLeaseTimeToLive(t *testing.T) {
	m := serveOn(t, "sqlite://:memory:", false, Options{})
	m.grant(t, 7, 600)
	m.put(t, "b", "x", 7)
	m.put(t, "a", "x", 7)
	got := m.left(t, 7)
	if got.ID != 7 || got.GrantedTTL != 600 || got.TTL >= 600 || got.TTL < 400 || got.Header.Revision != 3 {
		t.Errorf("time to live: %v", got)
	}
	if diff := cmp.Diff([][]byte{[]byte("a"), []byte("b")}, got.Keys); diff != "" {
		t.Errorf("keys: %s", diff)
	}
	got, err := m.lease.LeaseTimeToLive(bounded(t), &pb.LeaseTimeToLiveRequest{ID: 7})
	if err != nil || got.Keys != nil {
		t.Errorf("keys that were not asked for: %v, %v", got, err)
	}
	if got := m.left(t, 8); got.TTL != -1 || got.ID != 8 || got.GrantedTTL != 0 || got.Header.Revision != 3 {
		t.Errorf("a lease that there is not: %v", got)
	}
}

func TestLeaseLeases(t *testing.T) {
	m := serveOn(t, "sqlite://:memory:", false, Options{})
	list := func() (ids []int64) {
		r, err := m.lease.LeaseLeases(bounded(t), &pb.LeaseLeasesRequest{})
		if err != nil || r.Header.Revision != 1 {
			t.Fatalf("leases: %v, %v", r, err)
		}
		for _, l := range r.Leases {
			ids = append(ids, l.ID)
		}
		return ids
	}
	if got := list(); got != nil {
		t.Errorf("no leases: %v", got)
	}
	m.grant(t, 1, 300)
	m.grant(t, 2, 900)
	m.grant(t, 3, 600)
	if got := list(); !slices.Equal(got, []int64{1, 3, 2}) {
		t.Errorf("leases %v, want them in the order in which they expire", got)
	}
}
