package etcdtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// Load is what the clients of a small Kubernetes do to a key space that is empty at first: they create,
// update and delete in transactions that compare the mod revision, read, list in pages, put keys with leases,
// and watch. If a member is unavailable, they continue with another one, if there is one.
type Load struct {
	Members []string // HOST:PORT of each
	Clients int
	Seed    uint64 // the seed of the clients' actions; their times depend on the answers

	history *History
	target  atomic.Int64 // the revision at which watches end; 0: they continue
	writes  atomic.Int64 // successful writes
	leases  atomic.Int64 // granted leases
}

const (
	pods       = "/registry/pods/"
	events     = "/registry/events/"
	podCount   = 10
	pageLength = 3
	callTime   = 10 * time.Second // after that, the outcome is unknown
)

// Run runs the load until stop ends, waits until all leases have ended and all watches have reached the end,
// and returns what the clients saw. If ctx ends first, the history is incomplete.
func (l *Load) Run(ctx, stop context.Context) (*History, error) {
	l.history = NewHistory()
	var clients, watches sync.WaitGroup
	var all, watchers []*client
	watching, end := context.WithCancel(ctx)
	defer watches.Wait()
	defer end()
	for i, k := range l.watches() {
		c := l.newClient(1000 + i)
		defer c.close()
		watchers = append(watchers, c)
		watches.Go(func() { c.watch(watching, k) })
	}
	for i := range l.Clients {
		c := l.newClient(i)
		defer c.close()
		all = append(all, c)
		clients.Go(func() { c.play(stop, ctx) })
	}
	compactor := l.newClient(2000)
	defer compactor.close()
	clients.Go(func() { compactor.compact(stop, ctx, watchers) })
	clients.Wait()
	last := all[0]
	if err := last.awaitLeases(ctx); err != nil {
		return l.history, err
	}
	revision, err := last.readAll(ctx)
	if err != nil {
		return l.history, err
	}
	l.target.Store(revision)
	watches.Wait()
	return l.history, ctx.Err()
}

// Proves reports whether clients have written so much that a history without faults is significant. It may be
// called while the load runs.
func (l *Load) Proves() bool { return l.writes.Load() >= 50 && l.leases.Load() > 0 }

// client is a client of the load, with its own connection to each member.
type client struct {
	load    *Load
	id      int
	rand    *rand.Rand
	conns   []*grpc.ClientConn
	member  int              // the member that it uses
	mods    map[string]int64 // known mod revisions of pods; 0: the pod does not exist
	lease   *Lease
	written int

	position atomic.Int64 // the revision up to which its watches have received everything
}

func (l *Load) newClient(id int) *client {
	c := &client{load: l, id: id, rand: rand.New(rand.NewPCG(l.Seed, uint64(id))), mods: map[string]int64{}}
	for _, address := range l.Members {
		// Connections to a member that was unavailable are retried soon.
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, MaxDelay: 300 * time.Millisecond}, MinConnectTimeout: callTime,
		}))
		if err != nil {
			panic(err) // the address comes from a test
		}
		c.conns = append(c.conns, conn)
	}
	c.move()
	return c
}

func (c *client) close() {
	for _, conn := range c.conns {
		conn.Close()
	}
}

// move chooses a random member for the next calls.
func (c *client) move() { c.member = c.rand.IntN(len(c.conns)) }

func (c *client) kv() pb.KVClient        { return pb.NewKVClient(c.conns[c.member]) }
func (c *client) leases() pb.LeaseClient { return pb.NewLeaseClient(c.conns[c.member]) }

// play makes calls until stop ends. It completes a call that has begun.
func (c *client) play(stop, ctx context.Context) {
	for stop.Err() == nil {
		ok := c.playOne(ctx)
		pause := time.Duration(c.rand.IntN(20)) * time.Millisecond
		if !ok {
			pause += 50 * time.Millisecond
		}
		if !ok || c.rand.IntN(20) == 0 {
			c.move()
		}
		_ = sleep.For(stop, pause)
	}
}

// playOne makes one call, or all calls for the pages of a list. It returns false if an answer is missing.
func (c *client) playOne(ctx context.Context) bool {
	key := fmt.Sprintf("%sdefault/p%d", pods, c.rand.IntN(podCount))
	switch n := c.rand.IntN(100); {
	case n < 45:
		return c.update(ctx, key)
	case n < 55 && c.mods[key] != 0:
		return c.write(ctx, Call{Kind: Delete, Keys: []string{key}, Compare: true, Expect: c.mods[key]})
	case n < 60:
		keys := []string{key}
		for _, i := range c.rand.Perm(podCount)[:1+c.rand.IntN(3)] {
			if other := fmt.Sprintf("%sdefault/p%d", pods, i); other != key {
				keys = append(keys, other)
			}
		}
		return c.write(ctx, Call{Kind: Put, Keys: keys})
	case n < 78:
		return c.get(ctx, key)
	case n < 88:
		return c.list(ctx, span(pods))
	case n < 91:
		return c.list(ctx, span(events))
	case n < 94 && c.lease != nil:
		return c.renew(ctx)
	case n < 96 || c.lease == nil:
		return c.grant(ctx)
	default:
		c.written++
		return c.write(ctx, Call{Kind: Put, Keys: []string{fmt.Sprintf("%sdefault/e%d-%d", events, c.id, c.written)}, Lease: c.lease.ID, Compare: true})
	}
}
