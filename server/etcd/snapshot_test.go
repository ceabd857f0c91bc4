package etcd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// snapshot receives a snapshot, checks its sum, and returns the file as etcdctl writes it.
func (m *endpoint) snapshot(t testing.TB) string {
	t.Helper()
	stream, err := m.maintenance.Snapshot(bounded(t), &pb.SnapshotRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	rest := ^uint64(0)
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.Version != "3.7.0" || r.RemainingBytes > rest {
			t.Errorf("a message of version %s with %d bytes to come after %d", r.Version, r.RemainingBytes, rest)
		}
		all, rest = append(all, r.Blob...), r.RemainingBytes
	}
	n := len(all) - sha256.Size
	if n <= 0 || n%512 != 0 || rest != 0 {
		t.Fatalf("%d bytes with %d to come", len(all), rest)
	}
	if sum := sha256.Sum256(all[:n]); !bytes.Equal(sum[:], all[n:]) {
		t.Error("the sum is another one")
	}
	file := filepath.Join(t.TempDir(), "snapshot.db")
	if err := os.WriteFile(file, all, 0o600); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(m.o.Dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	return file
}

// saved is the content of a snapshot.
type saved struct {
	rows   []string // of the bucket "key", as describe returns them
	leases []string // as id/ttl
	small  map[string]string
	max    int64
}

// describe returns a row as its key in the bucket "key" has it, and its pair.
func describe(key []byte, kv *mvccpb.KeyValue) string {
	return fmt.Sprintf("%d_%d%s %s=%.20s create %d mod %d version %d lease %d", binary.BigEndian.Uint64(key), binary.BigEndian.Uint64(key[9:]), key[17:],
		kv.Key, kv.Value, kv.CreateRevision, kv.ModRevision, kv.Version, kv.Lease)
}

func readSnapshot(t testing.TB, file string) (s saved) {
	t.Helper()
	db, err := bbolt.Open(file, 0o400, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s.small = make(map[string]string)
	err = db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			t.Errorf("the file is not sound: %v", err)
		}
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			s.small[string(name)] += ""
			return b.ForEach(func(k, v []byte) error {
				switch string(name) {
				case "key":
					var kv mvccpb.KeyValue
					s.rows, s.max = append(s.rows, describe(k, &kv)), int64(binary.BigEndian.Uint64(k))
					err := proto.Unmarshal(v, &kv)
					s.rows[len(s.rows)-1] = describe(k, &kv)
					return err
				case "lease":
					n := varints(v)
					if int64(binary.BigEndian.Uint64(k)) != n[1] || n[3] < 1 || n[3] > n[2] {
						t.Errorf("lease %x: %v", k, n)
					}
					s.leases = append(s.leases, fmt.Sprintf("%d/%d", n[1], n[2]))
				default:
					s.small[string(name)] += fmt.Sprintf("%s=%s;", k, v)
				}
				return nil
			})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// varints returns the fields of a message that has only numbers.
func varints(message []byte) map[int]int64 {
	out := make(map[int]int64)
	for len(message) > 0 {
		field, _, n := protowire.ConsumeTag(message)
		value, k := protowire.ConsumeVarint(message[n:])
		out[int(field)], message = int64(value), message[n+k:]
	}
	return out
}

func TestSnapshot(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		m := serveOn(t, d.Fresh(t), false, Options{ClientURLs: []string{"http://127.0.0.1:2379"}})
		empty := readSnapshot(t, m.snapshot(t))
		if len(empty.rows) != 0 || len(empty.leases) != 0 {
			t.Errorf("a snapshot of nothing: %v", empty)
		}
		m.grant(t, 7, 600)
		m.grant(t, -8, 700)
		m.put(t, "a", "1", 0)  // 2
		m.put(t, "b", "1", 7)  // 3
		m.put(t, "a", "22", 0) // 4
		m.write(t, func(tx *sqlstore.Tx) {
			tx.Delete("b")
			tx.Put("c", nil, -8)
			tx.Put("d", []byte("4"), 0)
		}) // 5
		m.put(t, "a", "333", 0)                              // 6
		m.write(t, func(tx *sqlstore.Tx) { tx.Delete("d") }) // 7
		m.put(t, "b", "again", 0)                            // 8
		all := []string{
			"2_0 a=1 create 2 mod 2 version 1 lease 0",
			"3_0 b=1 create 3 mod 3 version 1 lease 7",
			"4_0 a=22 create 2 mod 4 version 2 lease 0",
			"5_0t b= create 0 mod 0 version 0 lease 0",
			"5_1 c= create 5 mod 5 version 1 lease -8",
			"5_2 d=4 create 5 mod 5 version 1 lease 0",
			"6_0 a=333 create 2 mod 6 version 3 lease 0",
			"7_0t d= create 0 mod 0 version 0 lease 0",
			"8_0 b=again create 8 mod 8 version 1 lease 0",
		}
		got := readSnapshot(t, m.snapshot(t))
		if diff := cmp.Diff(all, got.rows); diff != "" {
			t.Errorf("rows: %s", diff)
		}
		if diff := cmp.Diff([]string{"7/600", "-8/700"}, got.leases); diff != "" {
			t.Errorf("leases: %s", diff)
		}
		id := fmt.Sprint(m.memberID)
		want := map[string]string{
			"alarm": "", "auth": "authRevision=\x00\x00\x00\x00\x00\x00\x00\x01;", "authRoles": "", "authUsers": "",
			"cluster": "clusterVersion=3.7.0;", "key": "", "lease": "", "members_removed": "",
			"members": fmt.Sprintf(`%016x={"id":%s,"peerURLs":[],"name":"default","clientURLs":["http://127.0.0.1:2379"]};`, m.memberID, id),
			"meta": `confState={"voters":[` + id + `],"auto_leave":false};` +
				"consistent_index=\x00\x00\x00\x00\x00\x00\x00\x08;storageVersion=3.7.0;term=\x00\x00\x00\x00\x00\x00\x00\x01;",
		}
		want["members"] = strings.TrimLeft(want["members"], "0") // as etcd writes an id
		if diff := cmp.Diff(want, got.small); diff != "" {
			t.Errorf("other buckets: %s", diff)
		}
		for _, swept := range []bool{false, true} { // it makes no difference
			m.cut(t, 5+revisionIf(swept), swept)
			want := slices.Clone(all[2:])
			want = slices.DeleteFunc(want, func(row string) bool { return strings.Contains(row, "5_0t") })
			if swept {
				want = want[1:]
			}
			got := readSnapshot(t, m.snapshot(t))
			if diff := cmp.Diff(want, got.rows); diff != "" {
				t.Errorf("rows after compaction, swept %v: %s", swept, diff)
			}
			compacted := string([]byte{0, 0, 0, 0, 0, 0, 0, byte(5 + revisionIf(swept))}) + "_\x00\x00\x00\x00\x00\x00\x00\x00"
			if meta := got.small["meta"]; !strings.Contains(meta, "finishedCompactRev="+compacted) || !strings.Contains(meta, "scheduledCompactRev="+compacted) {
				t.Errorf("compacted revision: %q", meta)
			}
		}
	})
}

func revisionIf(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// A snapshot that is made while others write and compact is the exact state at some revision, with
// the exact history down to some floor.
func TestSnapshotMeanwhile(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		m := serveOn(t, d.Fresh(t), false, Options{})
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, 2))
			for i := 0; ctx.Err() == nil && i < 20000; i++ {
				key := fmt.Sprint("key", r.IntN(40))
				revision := m.write(t, func(tx *sqlstore.Tx) {
					if r.IntN(3) == 0 && tx.Get(key) != nil {
						tx.Delete(key)
					} else {
						tx.Put(key, make([]byte, 1+r.IntN(2000)), 0)
					}
				})
				switch {
				case i%20 == 19:
					m.cut(t, revision-int64(r.IntN(10)), r.IntN(2) == 0)
				case i > 200 && i%3 == 2: // also what the log is known by is gone then
					m.cut(t, revision-int64(r.IntN(2)), true)
				}
			}
		})
		for n := range int64(8) {
			eventually(t, "written", func() bool { return m.revision() > 50*n+50 })
			m.wantSound(t, readSnapshot(t, m.snapshot(t)))
		}
		stop()
		wg.Wait()
	})
}

// wantSound checks what every etcd's history has: revisions without gaps above the compacted one,
// versions that count up, and no row that is superseded at the compacted one.
func (m *endpoint) wantSound(t *testing.T, s saved) {
	t.Helper()
	compacted := int64(-1)
	if _, after, ok := strings.Cut(s.small["meta"], "finishedCompactRev="); ok {
		compacted = int64(binary.BigEndian.Uint64([]byte(after)))
	}
	type state struct{ create, version, revision int64 }
	now := make(map[string]state)
	last := compacted
	for _, row := range s.rows {
		var revision, sub, create, mod, version, lease int64
		var mark, key string
		head, tail, _ := strings.Cut(row, " ")
		if _, err := fmt.Sscanf(head, "%d_%d", &revision, &sub); err != nil {
			t.Fatal(err)
		}
		mark = strings.TrimLeft(strings.TrimPrefix(head, fmt.Sprint(revision, "_")), "0123456789")
		key, tail, _ = strings.Cut(tail, "=")
		if _, err := fmt.Sscanf(tail[strings.Index(tail, "create"):], "create %d mod %d version %d lease %d", &create, &mod, &version, &lease); err != nil {
			t.Fatal(err)
		}
		before, there := now[key]
		switch {
		case revision <= compacted && (there || mark == "t"):
			t.Errorf("compacted at %d: %s is superseded", compacted, row)
		case revision > compacted && compacted > 0 && revision != last+1:
			t.Errorf("after revision %d: %s", last, row)
		case mark == "t" && !there:
			t.Errorf("%s: there is no such key", row)
		case mark == "" && there && (create != before.create || version != before.version+1):
			t.Errorf("%s comes after %+v", row, before)
		case mark == "" && !there && revision > compacted && (create != revision || version != 1):
			t.Errorf("%s is the first of its key", row)
		case mark == "" && mod != revision:
			t.Errorf("%s: modified at another revision", row)
		}
		if now[key] = (state{create, version, revision}); mark == "t" {
			delete(now, key)
		}
		last = max(last, revision)
	}
	if len(s.rows) == 0 {
		t.Error("an empty snapshot")
	}
}

// What is compacted after it was read is not in the snapshot.
func TestSnapshotCompactedMeanwhile(t *testing.T) {
	m := serveOn(t, "sqlite://:memory:", false, Options{})
	for i := range 3 * snapshotRows {
		m.put(t, fmt.Sprint("key", i%2000), fmt.Sprint(i), 0)
	}
	m.write(t, func(tx *sqlstore.Tx) { tx.Delete("key5") })
	revision := m.put(t, "key6", "x", 0)
	file := filepath.Join(t.TempDir(), "file.db")
	db, err := bbolt.Open(file, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(makeBuckets); err != nil {
		t.Fatal(err)
	}
	w := &snapshotWriter{s: m.Server, db: db, leased: make(map[string]int64)}
	if err := w.copyRows(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.cut(t, revision-1, true)
	m.put(t, "key7", "later", 0)
	above := changelog.Head{Floor: w.revision + 1}
	if head, err := w.compact(t.Context(), above); err != nil || head != above {
		t.Errorf("compacted above what was read: %+v, %v", head, err)
	}
	if _, err := w.compact(t.Context(), changelog.Head{Floor: changelog.LastID(revision - 1)}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	var want []string
	rows, floor := m.rows(t), changelog.LastID(revision-1)
	newest := map[string]int64{} // at the floor: the log may keep more until the next cut
	for _, r := range rows {
		if r.Revision <= floor {
			newest[r.Key] = r.Revision
		}
	}
	for _, r := range rows {
		if r.Revision <= floor && (r.Deleted || newest[r.Key] != r.Revision) {
			continue
		}
		if at, _ := changelog.Split(r.Revision); at <= revision {
			p, err := revisionPair(&r)
			if err != nil {
				t.Fatal(err)
			}
			var kv mvccpb.KeyValue
			if err := proto.Unmarshal(p.value, &kv); err != nil {
				t.Fatal(err)
			}
			want = append(want, describe(p.key, &kv))
		}
	}
	got := readSnapshot(t, file).rows
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 2000 {
		t.Errorf("%d rows: %s", len(got), diff)
	}
}

// A key whose lease is gone by the time that the leases are read gets one that ends soon.
func TestSnapshotLeaseGone(t *testing.T) {
	m := serveOn(t, "sqlite://:memory:", false, Options{})
	m.grant(t, 1, 600)
	m.put(t, "a", "x", 1)
	w := &snapshotWriter{s: m.Server, leased: map[string]int64{"a": 1, "b": 2, "c": 3}}
	pairs, err := w.leases(t.Context(), []changelog.Lease{{ID: 1, TTL: 600}, {ID: 2, TTL: 60}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range pairs {
		n := varints(p.value)
		if n[1] != 1 {
			got = append(got, fmt.Sprint(n[1], n[2], n[3]))
		}
	}
	if diff := cmp.Diff([]string{"2 60 1", "3 2 1"}, got); diff != "" {
		t.Error(diff)
	}
}
