package etcd

import (
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore"
)

// TestWatchReplicas wants a watch from now on to begin after what any replica has acknowledged, and
// to get what any writes after it. What one has compacted is compacted at the other.
func TestWatchReplicas(t *testing.T) {
	logtest.EachShared(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		a := serveWatchesAt(t, dsn, sqlstore.Options{}, Options{})
		b := serveWatchesAt(t, dsn, sqlstore.Options{WindowBytes: 1}, Options{})
		c := b.open(t.Context())
		for i := range 20 {
			revision := a.do(putting("a", "before"))
			c.create(&pb.WatchCreateRequest{Key: []byte("a")})
			c.want(fmt.Sprintf("%d@%d created", i, revision))
			c.askProgress()
			c.want(fmt.Sprintf("-1@%d", revision))
			a.do(putting("a", "after"))
			c.want(fmt.Sprintf("%d@%d PUT:a=after/2/%d/%d/0", i, revision+1, revision+1, revision))
			c.cancelWatch(int64(i))
			c.want(fmt.Sprintf("%d@%d canceled", i, revision+1))
		}
		a.compact(30)
		c.create(&pb.WatchCreateRequest{Key: []byte("a"), StartRevision: 20})
		c.want("20@41 created", "20@0 canceled compacted:30")
		c.create(&pb.WatchCreateRequest{Key: []byte("a"), StartRevision: 41})
		c.want("21@41 created", "21@41 PUT:a=after/2/41/40/0")
	})
}
