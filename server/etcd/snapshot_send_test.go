package etcd

import (
	"context"
	"fmt"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/status"

	"github.com/plinth-io/plinth/sqlstore"
)

// Clients that do not read their snapshots keep nobody else from a snapshot for ever, and are told why
// theirs ended. Nobody is told so while nobody waits.
func TestSnapshotUnread(t *testing.T) {
	m := serveOn(t, "sqlite://:memory:", false, Options{})
	m.snapshots.stall = 50 * time.Millisecond
	value := make([]byte, 1<<20)
	for i := range 20 { // more than the windows of a connection can grow to
		m.put(t, fmt.Sprint("key", i), string(value), 0)
	}
	var unread []pb.Maintenance_SnapshotClient
	for range snapshotFiles {
		stream, err := m.maintenance.Snapshot(bounded(t), &pb.SnapshotRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		unread = append(unread, stream)
	}
	time.Sleep(3 * m.snapshots.stall)
	if n := len(m.snapshots.files); n != snapshotFiles {
		t.Errorf("%d of the snapshots are there that nobody waits for; want %d", n, snapshotFiles)
	}
	m.wantSound(t, readSnapshot(t, m.snapshot(t)))
	ended := 0
	for _, stream := range unread {
		for {
			r, err := stream.Recv()
			if err == nil && r.RemainingBytes > 0 {
				continue
			}
			if err != nil && status.Convert(err).Message() != status.Convert(errSnapshotStall).Message() {
				t.Errorf("a snapshot that was not read: %v", err)
			}
			if err != nil {
				ended++
			}
			break
		}
	}
	if ended == 0 {
		t.Error("no snapshot that was not read has ended")
	}
	eventually(t, "all files are gone", func() bool { return len(m.snapshots.files) == 0 })
}

// A client that goes away while it waits for room leaves nothing behind.
func TestSnapshotGone(t *testing.T) {
	m := serveOn(t, "sqlite://:memory:", false, Options{})
	m.write(t, func(tx *sqlstore.Tx) { tx.Put("key", []byte("1"), 0) })
	for range snapshotFiles {
		m.Server.snapshots.files <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := m.maintenance.Snapshot(ctx, &pb.SnapshotRequest{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it waits", func() bool { return m.Server.snapshots.waiting.Load() == 1 })
	cancel()
	eventually(t, "it waits no more", func() bool { return m.Server.snapshots.waiting.Load() == 0 })
	for range snapshotFiles {
		m.Server.snapshots.leave()
	}
	m.wantSound(t, readSnapshot(t, m.snapshot(t)))
}
