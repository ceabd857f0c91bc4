package etcdtest

import (
	"context"
	"fmt"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// GenerateClients returns a sequence for each of several clients that write at the same time. Each client has
// its own keys and leases, so that its answers do not depend on the others, except for revisions. Revisions
// that are relative to the newest one are relative to the client's own writes: head is its last write, head-1
// the one before.
func GenerateClients(seed uint64, clients, n int) [][]Step {
	all := make([][]Step, clients)
	for i := range all {
		for _, s := range Generate(seed+uint64(i), 3*n) {
			if own(s.Request, i) && len(all[i]) < n {
				all[i] = append(all[i], s)
			}
		}
	}
	return all
}

func clientPrefix(i int) string { return fmt.Sprintf("client%d/", i) }

// own changes a request so that it uses keys and leases of client i. It returns false if the request would
// still affect other clients.
func own(m Message, i int) bool {
	switch r := m.(type) {
	case *pb.PutRequest:
		r.Key, _ = ownRange(i, r.Key, nil)
		r.Lease = ownLease(i, r.Lease)
	case *pb.RangeRequest:
		r.Key, r.RangeEnd = ownRange(i, r.Key, r.RangeEnd)
		if r.Revision > head || r.Revision < head/2 {
			r.Revision = 0
		}
	case *pb.DeleteRangeRequest:
		r.Key, r.RangeEnd = ownRange(i, r.Key, r.RangeEnd)
	case *pb.TxnRequest:
		for _, c := range r.Compare {
			c.Key, c.RangeEnd = ownRange(i, c.Key, c.RangeEnd)
			if l, is := c.TargetUnion.(*pb.Compare_Lease); is {
				l.Lease = ownLease(i, l.Lease)
			}
		}
		for _, op := range slices.Concat(r.Success, r.Failure) {
			for _, inner := range []Message{op.GetRequestPut(), op.GetRequestRange(), op.GetRequestDeleteRange(), op.GetRequestTxn()} {
				if !isNil(inner) {
					own(inner, i)
				}
			}
		}
	case *pb.LeaseGrantRequest:
		r.ID = ownLease(i, r.ID)
	case *pb.LeaseKeepAliveRequest:
		r.ID = ownLease(i, r.ID)
	case *pb.LeaseTimeToLiveRequest:
		r.ID = ownLease(i, r.ID)
	default:
		return false
	}
	return true
}

func ownRange(i int, key, end []byte) (ownKey, ownEnd []byte) {
	prefix := clientPrefix(i)
	if len(key) > 0 {
		key = append([]byte(prefix), key...)
	}
	switch {
	case len(end) == 1 && end[0] == 0:
		end = []byte(clientv3.GetPrefixRangeEnd(prefix))
	case len(end) > 0:
		end = append([]byte(prefix), end...)
	}
	return key, end
}

func ownLease(i int, id int64) int64 {
	if id == 0 {
		return 0
	}
	return id + 100*int64(i+1)
}

// PlayClients sends all sequences at the same time, and then reads the whole history. In the recorded answers
// and the history, revisions are replaced by the numbers of the client's own writes, so that the record does
// not depend on how the clients interleave.
func PlayClients(ctx context.Context, conn *grpc.ClientConn, sequences [][]Step) ([]*Record, error) {
	records := make([]*Record, len(sequences))
	writes := make([][]int64, len(sequences))
	g, running := errgroup.WithContext(ctx)
	for i, steps := range sequences {
		g.Go(func() error {
			c := &ownClient{kv: pb.NewKVClient(conn), lease: pb.NewLeaseClient(conn), record: &Record{Watches: map[string][]string{}}}
			for _, s := range steps {
				c.play(running, s)
			}
			records[i], writes[i] = c.record, c.writes
			return running.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	events, err := history(ctx, conn)
	if err != nil {
		return nil, err
	}
	if faults := gaps(events); len(faults) > 0 {
		records[0].Faults = append(records[0].Faults, faults...)
	}
	for i, r := range records {
		prefix := clientPrefix(i)
		for _, e := range events {
			if len(e.Kv.Key) > len(prefix) && string(e.Kv.Key[:len(prefix)]) == prefix {
				renumber(e.Kv, writes[i])
				if e.PrevKv != nil {
					renumber(e.PrevKv, writes[i])
				}
				r.Watches["history"] = append(r.Watches["history"], e.String())
			}
		}
	}
	return records, nil
}

// ownClient is one of several clients.
type ownClient struct {
	kv     pb.KVClient
	lease  pb.LeaseClient
	writes []int64 // revisions of its own writes
	record *Record
}

func (c *ownClient) play(ctx context.Context, s Step) {
	m := proto.Clone(s.Request)
	c.record.Sent = append(c.record.Sent, fmt.Sprintf("%T %s", m, m)) // before revisions are filled in
	resolve(m, func(back int64) int64 {
		if n := len(c.writes) - 1 - int(back); n >= 0 && n < len(c.writes) {
			return c.writes[n]
		}
		return -1
	})
	p := &player{ctx: ctx, kv: c.kv, lease: c.lease, change: c.note}
	c.record.Answers = append(c.record.Answers, p.send(Step{Request: m}))
}

// note records the revision of a write, and replaces revisions by the numbers of writes.
func (c *ownClient) note(a answer) {
	h := a.GetHeader()
	if wrote(a) {
		c.writes = append(c.writes, h.Revision)
		if n := len(c.writes); n > 1 && c.writes[n-2] >= c.writes[n-1] {
			c.record.Faults = append(c.record.Faults, fmt.Sprintf("a write has revision %d after %d", c.writes[n-1], c.writes[n-2]))
		}
	}
	h.Revision = 0
	eachKV(a, func(kv *mvccpb.KeyValue) { renumber(kv, c.writes) })
}

// renumber replaces the revisions of kv by the numbers of a client's writes, from 1.
func renumber(kv *mvccpb.KeyValue, writes []int64) {
	for _, revision := range []*int64{&kv.CreateRevision, &kv.ModRevision} {
		if n, found := slices.BinarySearch(writes, *revision); found {
			*revision = int64(n + 1)
		} else if *revision != 0 {
			*revision = -*revision // not one of the client's
		}
	}
}

// wrote reports whether a is the answer to a request that made a revision.
func wrote(a answer) bool {
	switch a := a.(type) {
	case *pb.PutResponse:
		return true
	case *pb.DeleteRangeResponse:
		return a.Deleted > 0
	case *pb.TxnResponse:
		return slices.ContainsFunc(a.Responses, func(r *pb.ResponseOp) bool {
			inner := operationAnswer(r)
			return inner != nil && wrote(inner)
		})
	}
	return false
}

// operationAnswer returns the answer to one operation of a transaction, nil if there is none.
func operationAnswer(r *pb.ResponseOp) answer {
	for _, a := range []answer{r.GetResponsePut(), r.GetResponseDeleteRange(), r.GetResponseTxn(), r.GetResponseRange()} {
		if !isNil(a) {
			return a
		}
	}
	return nil
}

// eachKV calls f for all keys with their values in an answer.
func eachKV(a answer, f func(*mvccpb.KeyValue)) {
	var kvs []*mvccpb.KeyValue
	switch a := a.(type) {
	case *pb.PutResponse:
		kvs = append(kvs, a.PrevKv)
	case *pb.DeleteRangeResponse:
		kvs = a.PrevKvs
	case *pb.RangeResponse:
		kvs = a.Kvs
	case *pb.TxnResponse:
		for _, r := range a.Responses {
			if inner := operationAnswer(r); inner != nil {
				if h := inner.GetHeader(); h != nil {
					h.Revision = 0
				}
				eachKV(inner, f)
			}
		}
	}
	for _, kv := range kvs {
		if kv != nil {
			f(kv)
		}
	}
}

// history returns all events so far, as a watch of all keys from the first revision receives them.
func history(ctx context.Context, conn *grpc.ClientConn) ([]*mvccpb.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	newest, err := pb.NewKVClient(conn).Range(ctx, &pb.RangeRequest{Key: []byte("a")})
	if err != nil {
		return nil, err
	}
	w, err := pb.NewWatchClient(conn).Watch(ctx)
	if err != nil {
		return nil, err
	}
	create := &pb.WatchCreateRequest{Key: []byte{0}, RangeEnd: []byte{0}, StartRevision: 1, PrevKv: true}
	if err := w.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}}); err != nil {
		return nil, err
	}
	var events []*mvccpb.Event
	for len(events) == 0 || events[len(events)-1].Kv.ModRevision < newest.Header.Revision {
		r, err := w.Recv()
		if err != nil {
			return nil, fmt.Errorf("history to %d: %w", newest.Header.Revision, err)
		}
		if r.Canceled {
			return nil, fmt.Errorf("history was canceled: %s", r.CancelReason)
		}
		events = append(events, r.Events...)
	}
	return events, nil
}

// gaps returns the faults of a history in which every write has the revision after that of the write before.
func gaps(events []*mvccpb.Event) (faults []string) {
	last := int64(1) // of an empty key space
	for _, e := range events {
		if r := e.Kv.ModRevision; r != last && r != last+1 {
			faults = append(faults, fmt.Sprintf("revision %d comes after %d", r, last))
		}
		last = e.Kv.ModRevision
	}
	return faults
}
