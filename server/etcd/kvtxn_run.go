package etcd

import (
	"context"
	"math"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plinth-io/plinth/sqlstore"
)

// What one transaction may use while it holds the write lock. etcd has no such limits, so these are far above
// what clients need.
const (
	maxTxnSteps = 1 << 26       // keys that are read
	maxTxnKeys  = 1 << 22       // keys in its answer
	maxTxnBytes = math.MaxInt32 // bytes of keys and values in its answer: the most that gRPC can send
)

// errTooMuch has the code that gRPC returns for an answer that is too large to be sent.
var errTooMuch = status.Error(codes.ResourceExhausted, "etcdserver: the transaction takes or answers too much")

// txnRun is one attempt at a transaction. As in etcd, it goes through the operations three times: it first
// evaluates all comparisons, which select the branches; then it checks the branches; and only then does it
// write.
type txnRun struct {
	ctx       context.Context
	tx        *sqlstore.Tx
	place     *place
	compacted int64 // as Server.compacted

	path []bool // the selected branches, that of an outer transaction before those nested in it
	next int    // index in path

	past    map[*pb.RangeRequest]*pb.RangeResponse
	missing []*pb.RangeRequest // requests whose answers past lacks

	writes, keys, bytes int // so far
	steps               int // left

	size, unknown int // bytes of values in its answer, and the number of values whose size is unknown
}

func (x *txnRun) run(r *pb.TxnRequest) (*pb.TxnResponse, error) {
	if err := x.decide(r); err != nil {
		return nil, err
	}
	if err := x.check(r); err != nil {
		return nil, err
	}
	if len(x.missing) > 0 {
		return nil, errPast
	}
	x.next = 0
	resp, err := x.execute(r)
	if err != nil {
		return nil, err
	}
	resp.Header.Revision = x.revision()
	return resp, nil
}

// revision returns the revision of the state as the transaction now sees it.
func (x *txnRun) revision() int64 {
	if x.writes > 0 {
		return x.tx.Revision() + 1
	}
	return x.tx.Revision()
}

// branch returns the selected operations of the next transaction in path.
func (x *txnRun) branch(r *pb.TxnRequest) (ops []*pb.RequestOp, succeeded bool) {
	succeeded = x.path[x.next]
	x.next++
	if succeeded {
		return r.Success, true
	}
	return r.Failure, false
}

func (x *txnRun) decide(r *pb.TxnRequest) error {
	succeeded, err := x.holds(r.Compare)
	if err != nil {
		return err
	}
	x.path = append(x.path, succeeded)
	ops := r.Success
	if !succeeded {
		ops = r.Failure
	}
	for _, op := range ops {
		if nested := op.GetRequestTxn(); nested != nil {
			if err := x.decide(nested); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *txnRun) check(r *pb.TxnRequest) error {
	ops, _ := x.branch(r)
	for _, op := range ops {
		var err error
		switch o := op.Request.(type) {
		case *pb.RequestOp_RequestRange:
			err = x.checkRevision(o.RequestRange)
		case *pb.RequestOp_RequestPut:
			err = x.checkPut(o.RequestPut)
		case *pb.RequestOp_RequestTxn:
			err = x.check(o.RequestTxn)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *txnRun) checkRevision(r *pb.RangeRequest) error {
	switch {
	case r.Revision == 0:
	case r.Revision > x.tx.Revision():
		return rpctypes.ErrGRPCFutureRev
	case r.Revision < x.compacted:
		return rpctypes.ErrGRPCCompacted
	case r.Revision > 0 && x.past[r] == nil:
		x.missing = append(x.missing, r)
	}
	return nil
}

func (x *txnRun) checkPut(r *pb.PutRequest) error {
	if r.Lease != 0 {
		if _, ok := x.tx.Lease(r.Lease); !ok {
			return rpctypes.ErrGRPCLeaseNotFound
		}
	}
	if (r.IgnoreValue || r.IgnoreLease) && x.tx.Get(string(r.Key)) == nil {
		return rpctypes.ErrGRPCKeyNotFound
	}
	return nil
}

// execute executes the selected branches. As in etcd, the header of an answer within the answer has only a
// revision, and that of a nested transaction not even that.
func (x *txnRun) execute(r *pb.TxnRequest) (*pb.TxnResponse, error) {
	ops, succeeded := x.branch(r)
	resp := &pb.TxnResponse{Header: &pb.ResponseHeader{}, Succeeded: succeeded}
	resp.Responses = make([]*pb.ResponseOp, len(ops))
	for i, op := range ops {
		var err error
		if resp.Responses[i], err = x.executeOp(op); err != nil {
			return nil, err
		}
	}
	return resp, nil
}

func (x *txnRun) executeOp(op *pb.RequestOp) (*pb.ResponseOp, error) {
	switch o := op.Request.(type) {
	case *pb.RequestOp_RequestRange:
		resp, err := x.readRange(o.RequestRange)
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: resp}}, err
	case *pb.RequestOp_RequestPut:
		resp, err := x.put(o.RequestPut)
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponsePut{ResponsePut: resp}}, err
	case *pb.RequestOp_RequestDeleteRange:
		resp, err := x.deleteRange(o.RequestDeleteRange)
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: resp}}, err
	case *pb.RequestOp_RequestTxn:
		resp, err := x.execute(o.RequestTxn)
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseTxn{ResponseTxn: resp}}, err
	}
	return nil, rpctypes.ErrGRPCKeyNotFound
}

func (x *txnRun) put(r *pb.PutRequest) (*pb.PutResponse, error) {
	resp, err := putKey(x.tx, r)
	if err != nil {
		return nil, err
	}
	if resp.PrevKv != nil {
		if err := x.countAnswer(1, len(resp.PrevKv.Key)+len(resp.PrevKv.Value)); err != nil {
			return nil, err
		}
	}
	x.writes++
	resp.Header = &pb.ResponseHeader{Revision: x.revision()}
	return resp, nil
}

func (x *txnRun) readRange(r *pb.RangeRequest) (*pb.RangeResponse, error) {
	header := &pb.ResponseHeader{Revision: x.revision()}
	if r.Revision > 0 {
		past := x.past[r]
		return &pb.RangeResponse{Header: header, Kvs: past.Kvs, More: past.More, Count: past.Count}, nil
	}
	entries, count, err := selectEntries(x, spanOf(r.Key, r.RangeEnd), r)
	if err != nil {
		return nil, err
	}
	return answerRange(header, entries, count, x.values, r)
}

// txnRun is the state from which its ranges are read.
var _ keys = (*txnRun)(nil)

func (x *txnRun) get(key string) (*sqlstore.Entry, error) { return x.tx.Get(key), nil }

func (x *txnRun) count(from, to string) (int64, error) { return x.tx.Count(from, to), nil }

func (x *txnRun) scan(from, to string, f func(*sqlstore.Entry) bool) (err error) {
	x.tx.Ascend(from, to, func(e *sqlstore.Entry) bool {
		if err = x.step(); err != nil {
			return false
		}
		return f(e)
	})
	return err
}

// step counts a key that was read.
func (x *txnRun) step() error {
	x.steps--
	if x.steps < 0 {
		return errTooMuch
	}
	if x.steps%4096 == 0 {
		return x.ctx.Err()
	}
	return nil
}

// values returns values for the answer. A value that is not in memory is nil: then the transaction runs
// again.
func (x *txnRun) values(entries []*sqlstore.Entry) ([][]byte, error) {
	if err := x.checkLarge(entries); err != nil {
		return nil, err
	}
	values := make([][]byte, len(entries))
	size := 0
	for i, e := range entries {
		values[i], _ = x.tx.Value(e)
		size += len(e.Key) + len(values[i])
	}
	return values, x.countAnswer(len(entries), size)
}

// checkLarge returns errLarge if the values of entries may make the answer large and there is no place for
// it. It is called before the values are read.
func (x *txnRun) checkLarge(entries []*sqlstore.Entry) error {
	if x.place == nil || x.place.taken.Load() {
		return nil
	}
	if size, known := valueBytes(entries); known {
		x.size += size
	} else {
		x.unknown += len(entries)
	}
	if x.size > largeAnswer || x.unknown > firstValues {
		return errLarge
	}
	return nil
}

// countAnswer counts what is added to the answer.
func (x *txnRun) countAnswer(keys, size int) error {
	x.keys += keys
	x.bytes += size
	if x.keys > maxTxnKeys || x.bytes > maxTxnBytes {
		return errTooMuch
	}
	return nil
}

func (x *txnRun) entriesIn(at span) ([]*sqlstore.Entry, error) {
	if at.one {
		if e := x.tx.Get(at.from); e != nil {
			return []*sqlstore.Entry{e}, nil
		}
		return nil, nil
	}
	var entries []*sqlstore.Entry
	err := x.scan(at.from, at.to, func(e *sqlstore.Entry) bool {
		entries = append(entries, e)
		return true
	})
	return entries, err
}
