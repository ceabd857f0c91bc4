package etcd

import (
	"fmt"
	"sync"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

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

// TestWatchThenWrite has many clients that each create a watch of all keys and write to a key of their own
// as soon as the watch is created, through the other member if there is one. Each revision is one write,
// so that each watch sees, from the revision that it was created at, every one until its own write, once
// and in order.
func TestWatchThenWrite(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		members := []*member{startMember(t, dsn, Options{})}
		if d.Servers > 1 {
			members = append(members, startMember(t, dsn, Options{}))
		}
		const clients, rounds = 12, 80
		var wg sync.WaitGroup
		for i := range clients {
			watched, written := members[i%len(members)], members[(i+1)%len(members)]
			c := openWatches(t, watched.conn)
			wg.Go(func() {
				for round := range rounds {
					if err := c.watchThenWrite(written.client, fmt.Sprintf("k/%d/%d", i, round), round%2 == 0); err != nil {
						t.Errorf("client %d, round %d: %v", i, round, err)
						return
					}
				}
			})
		}
		wg.Wait()
	})
}

// watchThenWrite does one round. Without await the write does not wait for the watch to be created.
func (c *watchClient) watchThenWrite(writer *clientv3.Client, key string, await bool) error {
	const id = 7
	c.create(&pb.WatchCreateRequest{Key: []byte("k/"), RangeEnd: []byte("k0"), WatchId: id})
	written := make(chan int64, 1)
	write := func() {
		r, err := writer.Put(patiently(c.t), key, "x")
		if err != nil {
			c.t.Error(err)
			written <- 0
			return
		}
		written <- r.Header.Revision
	}
	if !await {
		go write()
	}
	r, err := c.next()
	if err != nil || !r.Created || r.Canceled {
		return fmt.Errorf("create: %v, %w", r, err)
	}
	last := r.Header.Revision
	if await {
		go write()
	}
	own := <-written
	if await && own <= last {
		return fmt.Errorf("the write got revision %d after a watch was created at %d", own, last)
	}
	for last < own {
		r, err := c.next()
		if err != nil {
			return err
		}
		if last, err = follow(r, last, own, key); err != nil {
			return err
		}
	}
	c.cancelWatch(id)
	for {
		if r, err = c.next(); err != nil || r.Canceled {
			return err
		}
		if last, err = follow(r, last, own, key); err != nil {
			return err
		}
	}
}

// follow checks that the events of r have the revisions after last, and key at own alone.
func follow(r *pb.WatchResponse, last, own int64, key string) (int64, error) {
	for _, ev := range r.Events {
		if ev.Kv.ModRevision != last+1 || (string(ev.Kv.Key) == key) != (ev.Kv.ModRevision == own) {
			return 0, fmt.Errorf("after revision %d: %s, want %s at %d", last, ev, key, own)
		}
		last++
	}
	return last, nil
}
