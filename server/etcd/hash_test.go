package etcd

import (
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore"
)

// hashed is what etcd 3.7.3 answered, started anew after each compaction.
type hashed struct {
	revision, compacted int64
	hash                uint32
}

func (m *endpoint) wantHashes(t *testing.T, want []hashed) {
	t.Helper()
	for _, w := range want {
		r, err := m.maintenance.HashKV(bounded(t), &pb.HashKVRequest{Revision: w.revision})
		if err != nil {
			t.Errorf("hash at %d, compacted %d: %v", w.revision, w.compacted, err)
			continue
		}
		if got := (hashed{r.HashRevision, r.CompactRevision, r.Hash}); got != w || r.Header.Revision != m.revision() {
			t.Errorf("hash %+v at %d, want %+v", got, r.Header.Revision, w)
		}
	}
}

func (m *endpoint) cut(t *testing.T, revision int64, swept bool) {
	t.Helper()
	if _, err := m.store.Keys().CutTo(t.Context(), revision, swept); err != nil {
		t.Fatal(err)
	}
}

// A history has the hashes that etcd has for the same history.
func TestHashKV(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		m := serveOn(t, d.Fresh(t), false, Options{})
		m.wantHashes(t, []hashed{{1, -1, 1084519789}})
		m.put(t, "a", "1", 0)
		m.put(t, "b", "2", 0)
		m.write(t, func(tx *sqlstore.Tx) {
			tx.Put("c", []byte("3"), 0)
			tx.Put("d", []byte("4"), 0)
			tx.Delete("a")
		})
		m.grant(t, 0x1234, 600)
		m.put(t, "e", "5", 0x1234)
		m.put(t, "b", "22", 0)
		m.write(t, func(tx *sqlstore.Tx) { tx.Delete("d") })
		m.put(t, "a", "again", 0)
		if _, err := m.lease.LeaseRevoke(bounded(t), &pb.LeaseRevokeRequest{ID: 0x1234}); err != nil {
			t.Fatal(err)
		}
		m.put(t, "f", "", 0)
		m.wantHashes(t, []hashed{
			{1, -1, 1084519789}, {2, -1, 2587454935}, {3, -1, 1827592406}, {4, -1, 3973566003}, {5, -1, 2021902852},
			{6, -1, 878796546}, {7, -1, 3656683698}, {8, -1, 2172270605}, {9, -1, 2376692842}, {10, -1, 653116317},
		})
		// It makes no difference whether what is compacted is deleted yet.
		m.cut(t, 4, false)
		m.wantHashes(t, []hashed{
			{4, 4, 2964130059}, {5, 4, 1190113759}, {6, 4, 1212443600}, {7, 4, 834438214}, {8, 4, 1378485770},
			{9, 4, 3222682327}, {10, 4, 1115376657},
		})
		m.cut(t, 7, true)
		m.wantHashes(t, []hashed{{7, 7, 1521990325}, {8, 7, 920380961}, {9, 7, 278598013}, {10, 7, 1323000675}})
		m.cut(t, 9, true)
		m.wantHashes(t, []hashed{{9, 9, 2333506046}, {10, 9, 1461867528}})
		m.write(t, func(tx *sqlstore.Tx) {
			for _, key := range []string{"a", "b", "c", "f"} {
				tx.Delete(key)
			}
		})
		m.wantHashes(t, []hashed{{9, 9, 2333506046}, {10, 9, 1461867528}, {11, 9, 1834768691}})
		m.cut(t, 10, true)
		m.wantHashes(t, []hashed{{10, 10, 1461867528}, {11, 10, 1834768691}})
		m.cut(t, 11, true)
		m.wantHashes(t, []hashed{{11, 11, 1084519789}})
		m.put(t, "z", "z", 0)
		m.wantHashes(t, []hashed{{11, 11, 1084519789}, {12, 11, 259286533}})

		_, err := m.maintenance.HashKV(bounded(t), &pb.HashKVRequest{Revision: 10})
		wantError(t, "hash at a compacted revision", err, rpctypes.ErrGRPCCompacted)
		_, err = m.maintenance.HashKV(bounded(t), &pb.HashKVRequest{Revision: 13})
		wantError(t, "hash at a future revision", err, rpctypes.ErrGRPCFutureRev)
		r, err := m.maintenance.HashKV(bounded(t), &pb.HashKVRequest{})
		if err != nil || r.Hash != 259286533 || r.HashRevision != 12 {
			t.Errorf("hash now: %v, %v", r, err)
		}
	})
}

// The hash of everything changes with keys, leases and alarms, and with nothing else.
func TestHash(t *testing.T) {
	m := serveOn(t, "sqlite://:memory:", false, Options{})
	seen := make(map[uint32]string)
	last := uint32(0)
	look := func(what string, changed bool) {
		r, err := m.maintenance.Hash(bounded(t), &pb.HashRequest{})
		if err != nil || r.Header.Revision != m.revision() {
			t.Fatalf("%s: %v, %v", what, r, err)
		}
		if changed == (r.Hash == last) || changed && seen[r.Hash] != "" {
			t.Errorf("%s: hash %d, before %d, which was that of %q", what, r.Hash, last, seen[r.Hash])
		}
		last, seen[r.Hash] = r.Hash, what
	}
	look("nothing", true)
	m.put(t, "a", "1", 0)
	look("a put", true)
	look("nothing again", false)
	m.grant(t, 1, 100)
	look("a lease", true)
	m.keepAlive(t, 1)
	look("a renewal", false)
	if _, err := m.maintenance.Alarm(bounded(t), &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, Alarm: pb.AlarmType_NOSPACE, MemberID: 5}); err != nil {
		t.Fatal(err)
	}
	look("an alarm", true)
}
