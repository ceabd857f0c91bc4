package etcdtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// Load is what the clients of a small Kubernetes do to a key space that is empty at first: they create,
// update and delete by transactions that compare the mod revision, read, list in pages, put keys with
// leases, and watch. They go on when a member is away, with another if there is one.
type Load struct {
	Members []string // HOST:PORT of each
	Clients int
	Seed    uint64 // of what clients do; when they do it depends on the answers

	history *History
	target  atomic.Int64 // watches end when they have come so far; 0: they go on
	writes  atomic.Int64 // that succeeded
	leases  atomic.Int64 // that were granted
}

const (
	pods       = "/registry/pods/"
	events     = "/registry/events/"
	podCount   = 10
	pageLength = 3
	callTime   = 10 * time.Second // then the outcome is not known
)

// Run plays the load until stop ends, waits until all leases have ended and all watches have come to
// the end, and returns what the clients saw. ctx bounds everything: if it ends before, the
// history lacks what should have come.
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

// Proves tells whether clients have written so much that a history without faults says something.
// It may be called while the load runs.
func (l *Load) Proves() bool { return l.writes.Load() >= 50 && l.leases.Load() > 0 }

// client is one of the load's, with a connection of its own to each member.
type client struct {
	load    *Load
	id      int
	rand    *rand.Rand
	conns   []*grpc.ClientConn
	member  int              // that it talks to
	mods    map[string]int64 // mod revisions of pods as it knows them; 0: not there
	lease   *Lease
	written int

	position atomic.Int64 // of a client that watches
}

func (l *Load) newClient(id int) *client {
	c := &client{load: l, id: id, rand: rand.New(rand.NewPCG(l.Seed, uint64(id))), mods: map[string]int64{}}
	for _, address := range l.Members {
		// A member that was away is tried again soon.
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, MaxDelay: 300 * time.Millisecond}, MinConnectTimeout: callTime,
		}))
		if err != nil {
			panic(err) // the address is one of ours
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

// move goes on with any member.
func (c *client) move() { c.member = c.rand.IntN(len(c.conns)) }

func (c *client) kv() pb.KVClient        { return pb.NewKVClient(c.conns[c.member]) }
func (c *client) leases() pb.LeaseClient { return pb.NewLeaseClient(c.conns[c.member]) }

// play calls until stop ends. A call that has begun goes on to its end.
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

// playOne makes one of the calls, or all for the pages of a list. It returns false if an answer is missing.
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

// update puts a key, once more if another client was faster.
func (c *client) update(ctx context.Context, key string) bool {
	for range 2 {
		call := Call{Kind: Put, Keys: []string{key}, Compare: true, Expect: c.mods[key]}
		if call = c.transact(ctx, call); call.Error != "" || call.Succeeded {
			return call.Error == ""
		}
	}
	return true
}

// call records a call. ask returns its answer.
func (c *client) call(ctx context.Context, call Call, ask func(context.Context) (Answer, error)) Call {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	call.Client, call.Member, call.Begin = c.id, c.member, c.load.history.Now()
	answer, err := ask(ctx)
	call.End = c.load.history.Now()
	if err != nil {
		call.Error, call.Compacted = err.Error(), rpctypes.Error(err) == rpctypes.ErrCompacted
		call.Refused = !call.Compacted && !outage(err, call)
	} else {
		call.Answer = answer
	}
	c.load.history.Add(call)
	if call.Writes() && call.Succeeded {
		c.load.writes.Add(1)
	}
	return call
}

// outage tells whether err is what a call may be told when a member or its database is away, or when
// the lease of its key has ended.
func outage(err error, call Call) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return true
	case codes.NotFound:
		return call.Lease != 0
	}
	return false
}

func (c *client) write(ctx context.Context, call Call) bool { return c.transact(ctx, call).Error == "" }

// transact puts a value of its own, or deletes. If the comparison fails, it learns what is there.
func (c *client) transact(ctx context.Context, call Call) Call {
	txn := &pb.TxnRequest{}
	if call.Kind == Put {
		c.written++
		call.Value = fmt.Sprintf("%d-%d", c.id, c.written)
	}
	if call.Compare {
		txn.Compare = []*pb.Compare{{Key: []byte(call.Keys[0]), Target: pb.Compare_MOD, TargetUnion: &pb.Compare_ModRevision{ModRevision: call.Expect}}}
		txn.Failure = []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte(call.Keys[0])}}}}
	}
	for _, key := range call.Keys {
		op := &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(key), Value: []byte(call.Value), Lease: call.Lease}}}
		if call.Kind == Delete {
			op.Request = &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(key)}}
		}
		txn.Success = append(txn.Success, op)
	}
	call = c.call(ctx, call, func(ctx context.Context) (a Answer, err error) {
		r, err := c.kv().Txn(ctx, txn)
		if err != nil {
			return a, err
		}
		a = Answer{Revision: r.Header.Revision, Succeeded: r.Succeeded}
		if !r.Succeeded {
			a.KVs = kvsOf(r.Responses[0].GetResponseRange().GetKvs())
		}
		return a, nil
	})
	if call.Lease != 0 && call.Error != "" {
		c.lease = nil // it may have ended
	}
	c.learn(call)
	return call
}

// learn remembers mod revisions for the comparisons of later calls.
func (c *client) learn(call Call) {
	switch {
	case call.Error != "" || call.Kind == List:
	case !call.Succeeded || call.Kind == Get:
		c.mods[call.Keys[0]] = 0
		if len(call.KVs) > 0 {
			c.mods[call.Keys[0]] = call.KVs[0].Mod
		}
	default:
		for _, key := range call.Keys {
			c.mods[key] = call.Revision
			if call.Kind == Delete {
				c.mods[key] = 0
			}
		}
	}
}

func (c *client) get(ctx context.Context, key string) bool {
	call := c.call(ctx, Call{Kind: Get, Keys: []string{key}}, func(ctx context.Context) (a Answer, err error) {
		r, err := c.kv().Range(ctx, &pb.RangeRequest{Key: []byte(key)})
		if err != nil {
			return a, err
		}
		return Answer{Revision: r.Header.Revision, Succeeded: true, KVs: kvsOf(r.Kvs)}, nil
	})
	c.learn(call)
	return call.Error == ""
}

// list reads all pages at the revision of the first. Each may come from another member.
func (c *client) list(ctx context.Context, span [2]string) bool {
	from, end := span[0], span[1]
	for at := int64(0); ; {
		call := c.page(ctx, Call{Kind: List, Keys: []string{from, end}, At: at, Limit: pageLength})
		if call.Error != "" || !call.More {
			return call.Error == ""
		}
		if at == 0 {
			at = call.Revision
		}
		if len(call.KVs) > 0 {
			from = call.KVs[len(call.KVs)-1].Key + "\x00"
		}
		if c.rand.IntN(4) == 0 {
			c.move()
		}
	}
}

func (c *client) page(ctx context.Context, call Call) Call {
	return c.call(ctx, call, func(ctx context.Context) (a Answer, err error) {
		ask := &pb.RangeRequest{Key: []byte(call.Keys[0]), RangeEnd: []byte(call.Keys[1]), Revision: call.At, Limit: call.Limit}
		var r *pb.RangeResponse
		if c.rand.IntN(2) == 0 {
			r, err = c.kv().Range(ctx, ask)
		} else {
			r, err = rangeStream(ctx, c.kv(), ask)
		}
		if err != nil {
			return a, err
		}
		return Answer{Revision: r.Header.Revision, Succeeded: true, KVs: kvsOf(r.Kvs), Count: r.Count, More: r.More}, nil
	})
}

// compact compacts every second what all watches have been told.
func (c *client) compact(stop, ctx context.Context, watchers []*client) {
	for compacted := int64(0); stop.Err() == nil; _ = sleep.For(stop, time.Second) {
		through := watchers[0].position.Load()
		for _, w := range watchers {
			through = min(through, w.position.Load())
		}
		if through <= compacted {
			continue
		}
		call := c.call(ctx, Call{Kind: Compact, At: through}, func(ctx context.Context) (a Answer, err error) {
			r, err := c.kv().Compact(ctx, &pb.CompactionRequest{Revision: through, Physical: c.rand.IntN(2) == 0})
			if err != nil {
				return a, err
			}
			return Answer{Revision: r.Header.Revision, Succeeded: true}, nil
		})
		if call.Error == "" {
			compacted = through
		}
		c.move()
	}
}

// grant gets a new lease for the next keys.
func (c *client) grant(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	begin := c.load.history.Now()
	r, err := c.leases().LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: int64(2 + c.rand.IntN(3))})
	if err != nil {
		return false
	}
	c.load.leases.Add(1)
	c.lease = c.load.history.AddLease(&Lease{ID: r.ID, TTL: time.Duration(r.TTL) * time.Second, Renewed: begin})
	return true
}

func (c *client) renew(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	begin := c.load.history.Now()
	stream, err := c.leases().LeaseKeepAlive(ctx)
	if err != nil {
		return false
	}
	if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: c.lease.ID}); err != nil {
		return false
	}
	r, err := stream.Recv()
	switch {
	case err != nil:
		return false
	case r.TTL > 0:
		c.lease.Renewed = begin
	default:
		c.lease = nil
	}
	return true
}

// awaitLeases waits until all leases have ended.
func (c *client) awaitLeases(ctx context.Context) error {
	for _, lease := range c.load.history.Leases {
		for !lease.Gone {
			r, err := c.timeToLive(ctx, lease.ID)
			lease.Gone = err == nil && r.TTL == -1
			if ctx.Err() != nil {
				return fmt.Errorf("wait for the end of lease %d: %w", lease.ID, ctx.Err())
			}
			if !lease.Gone {
				c.move()
				_ = sleep.For(ctx, 100*time.Millisecond)
			}
		}
	}
	return nil
}

func (c *client) timeToLive(ctx context.Context, id int64) (*pb.LeaseTimeToLiveResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return c.leases().LeaseTimeToLive(ctx, &pb.LeaseTimeToLiveRequest{ID: id})
}

// readAll reads everything from each member and returns the last revision.
func (c *client) readAll(ctx context.Context) (revision int64, err error) {
	everything := span("/registry/")
	for c.member = range c.conns {
		for {
			call := c.page(ctx, Call{Kind: List, Keys: everything[:]})
			if call.Error == "" {
				revision = call.Revision
				break
			}
			if ctx.Err() != nil {
				return 0, fmt.Errorf("read everything: %s", call.Error)
			}
			_ = sleep.For(ctx, 100*time.Millisecond)
		}
	}
	return revision, nil
}
