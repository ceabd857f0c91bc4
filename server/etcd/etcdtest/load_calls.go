package etcdtest

import (
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// update puts a key, and tries once more if another client was faster.
func (c *client) update(ctx context.Context, key string) bool {
	for range 2 {
		call := Call{Kind: Put, Keys: []string{key}, Compare: true, Expect: c.mods[key]}
		if call = c.transact(ctx, call); call.Error != "" || call.Succeeded {
			return call.Error == ""
		}
	}
	return true
}

// call makes and records a call. ask returns its answer.
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

// outage reports whether err is expected when a member or its database is unavailable, or when the lease of
// the key has ended.
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

// transact puts a unique value, or deletes. If the comparison fails, it learns the present state.
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

// readAll reads everything from each member, and returns the last revision.
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

// compact compacts once a second up to the revision that all watches have received.
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
