package etcd

import (
	"github.com/plinth-io/plinth/sqlstore/changelog"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The checks in this file read only the request.

func checkRange(r *pb.RangeRequest) error {
	if len(r.Key) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	if r.SortOrder < pb.RangeRequest_NONE || r.SortOrder > pb.RangeRequest_DESCEND {
		return rpctypes.ErrGRPCInvalidSortOption
	}
	if r.SortTarget < pb.RangeRequest_KEY || r.SortTarget > pb.RangeRequest_VALUE {
		return rpctypes.ErrGRPCInvalidSortOption
	}
	return nil
}

func checkPut(r *pb.PutRequest) error {
	switch {
	case len(r.Key) == 0:
		return rpctypes.ErrGRPCEmptyKey
	case r.IgnoreValue && len(r.Value) != 0:
		return rpctypes.ErrGRPCValueProvided
	case r.IgnoreLease && r.Lease != 0:
		return rpctypes.ErrGRPCLeaseProvided
	case len(r.Key) > changelog.MaxKeyBytes: // etcd bounds only the size of the whole request
		return status.Errorf(codes.InvalidArgument, "etcdserver: request is too large: the key has %d bytes, and plinth takes %d at most", len(r.Key), changelog.MaxKeyBytes)
	}
	return nil
}

func checkDelete(r *pb.DeleteRangeRequest) error {
	if len(r.Key) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	return nil
}

// checkTxn checks all operations of a transaction. A level has at most most operations, and the levels below
// may have as many less, so that there are at most most levels.
func checkTxn(r *pb.TxnRequest, most int) error {
	n := max(len(r.Compare), len(r.Success), len(r.Failure))
	if n > most {
		return rpctypes.ErrGRPCTooManyOps
	}
	for _, c := range r.Compare {
		if len(c.Key) == 0 {
			return rpctypes.ErrGRPCEmptyKey
		}
	}
	if err := checkOps(r.Success, most-n); err != nil {
		return err
	}
	return checkOps(r.Failure, most-n)
}

func checkOps(ops []*pb.RequestOp, most int) error {
	for _, op := range ops {
		if err := checkOp(op, most); err != nil {
			return err
		}
	}
	return nil
}

func checkOp(op *pb.RequestOp, most int) error {
	switch o := op.Request.(type) {
	case *pb.RequestOp_RequestRange:
		return checkRange(o.RequestRange)
	case *pb.RequestOp_RequestPut:
		return checkPut(o.RequestPut)
	case *pb.RequestOp_RequestDeleteRange:
		return checkDelete(o.RequestDeleteRange)
	case *pb.RequestOp_RequestTxn:
		return checkTxn(o.RequestTxn, most)
	}
	return rpctypes.ErrGRPCKeyNotFound // an empty operation, or one of a newer client
}

// readOnly reports whether a transaction takes the path of reads: only ranges do. A nested transaction takes
// the path of writes, whatever it contains.
func readOnly(r *pb.TxnRequest) bool {
	return all(r, func(r *pb.RangeRequest) bool { return r != nil })
}

// serializable reports whether a transaction may be answered from a state that is not the newest.
func serializable(r *pb.TxnRequest) bool {
	return all(r, func(r *pb.RangeRequest) bool { return r != nil && r.Serializable })
}

func all(r *pb.TxnRequest, good func(*pb.RangeRequest) bool) bool {
	for _, ops := range [...][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range ops {
			if !good(op.GetRequestRange()) {
				return false
			}
		}
	}
	return true
}

// eachPut calls f for all puts in both branches of a transaction.
func eachPut(r *pb.TxnRequest, f func(*pb.PutRequest)) {
	for _, ops := range [...][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range ops {
			switch o := op.Request.(type) {
			case *pb.RequestOp_RequestPut:
				f(o.RequestPut)
			case *pb.RequestOp_RequestTxn:
				eachPut(o.RequestTxn, f)
			}
		}
	}
}

// costOfPut and costOfTxn return how many bytes etcd expects a request to add to the database. For a
// transaction, the more expensive branches count.
func costOfPut(r *pb.PutRequest) int { return putCost + len(r.Key) + len(r.Value) }

func costOfTxn(r *pb.TxnRequest) int { return max(costOfOps(r.Success), costOfOps(r.Failure)) }

func costOfOps(ops []*pb.RequestOp) (cost int) {
	for _, op := range ops {
		switch o := op.Request.(type) {
		case *pb.RequestOp_RequestPut:
			cost += costOfPut(o.RequestPut)
		case *pb.RequestOp_RequestTxn:
			cost += costOfTxn(o.RequestTxn)
		}
	}
	return cost
}
