package upstream_test

import (
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/plinth-io/plinth/server/etcd/etcdtest"
	"github.com/plinth-io/plinth/server/upstream"
)

// TestSnapshotCompacted has a snapshot of an etcd that was compacted and defragmented, with keys that
// were deleted before and after, were made again, or have a lease.
func TestSnapshotCompacted(t *testing.T) {
	c := client(t, "http://"+etcdtest.StartAt(t))
	ctx := t.Context()
	for _, key := range []string{"/registry/a", "/registry/b", "/registry/c", "/registry/d", "/other"} {
		c.set(t, key, "1")
	}
	c.remove(t, "/registry/b")
	c.set(t, "/registry/a", "2")
	c.remove(t, "/registry/c")
	c.set(t, "/registry/c", "3")
	_, err := c.Compact(ctx, c.revision(t), clientv3.WithCompactPhysical())
	must(t, err)
	_, err = c.Defragment(ctx, c.Endpoints()[0])
	must(t, err)
	lease, err := c.Grant(ctx, 3600)
	must(t, err)
	_, err = c.Put(ctx, "/registry/e", "4", clientv3.WithLease(lease.ID))
	must(t, err)
	c.set(t, "/registry/f", "5")
	c.remove(t, "/registry/f")
	c.remove(t, "/registry/d")
	stream, err := c.Snapshot(ctx)
	must(t, err)
	content, err := io.ReadAll(stream)
	must(t, err)
	s, err := upstream.OpenSnapshot(ctx, snapshotFile(t, content))
	must(t, err)
	defer s.Close()
	got := map[string]string{}
	must(t, s.Each(ctx, "/registry/", func(page []upstream.Pair) error {
		for _, p := range page {
			got[p.Key] = string(p.Value)
		}
		return nil
	}))
	want := map[string]string{"/registry/a": "2", "/registry/c": "3", "/registry/e": "4"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if now := c.revision(t); s.Revision() != now {
		t.Errorf("the revision is %d, not %d", s.Revision(), now)
	}
}
