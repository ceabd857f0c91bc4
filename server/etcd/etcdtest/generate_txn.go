package etcdtest

import (
	"bytes"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// transaction returns a transaction without a key that is deleted and put in one revision, which etcd cannot
// handle. Such a key breaks the index of etcd 3.6 at compaction ("range failed to find revision pair"), and
// etcd exits if the put requests the previous value of a key that is gone by then ("unexpected error during
// txn with writes"). etcd refuses this in a flat transaction, unless the deletion is of all keys from one on,
// and in some cases does not refuse it in a nested one.
func (g *generator) transaction() *pb.TxnRequest {
	for {
		r := g.txn(0)
		if (refused(r.Success) || !overlap(r.Success)) && (refused(r.Failure) || !overlap(r.Failure)) {
			return r
		}
	}
}

func (g *generator) txn(depth int) *pb.TxnRequest {
	r := &pb.TxnRequest{}
	for range g.IntN(3) {
		r.Compare = append(r.Compare, g.compare())
	}
	r.Success, r.Failure = g.operations(depth), g.operations(depth)
	if depth == 0 && g.often(60) {
		for range 120 + g.IntN(16) { // etcd's limit is 128
			r.Success = append(r.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte("a")}}})
		}
	}
	return r
}

func (g *generator) operations(depth int) []*pb.RequestOp {
	var ops []*pb.RequestOp
	for range g.IntN(4) {
		ops = append(ops, g.operation(depth))
	}
	return ops
}

func (g *generator) operation(depth int) *pb.RequestOp {
	if g.often(150) {
		return &pb.RequestOp{} // etcd refuses it
	}
	if depth < 3 && g.often(6) {
		return &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: g.txn(depth + 1)}}
	}
	switch g.IntN(7) {
	case 0, 1:
		return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: g.readRange()}}
	case 2:
		return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: g.deleteRange()}}
	}
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: g.put()}}
}

func (g *generator) compare() *pb.Compare {
	c := &pb.Compare{Result: pb.Compare_CompareResult(g.IntN(4)), Target: pb.Compare_CompareTarget(g.IntN(5)), Key: g.key()}
	if g.often(4) {
		c.Key, c.RangeEnd = g.ends()
	}
	union := c.Target
	if g.often(30) {
		union = pb.Compare_CompareTarget(g.IntN(6)) // not the target's, or none
	}
	switch union {
	case pb.Compare_VERSION:
		c.TargetUnion = &pb.Compare_Version{Version: int64(g.IntN(4))}
	case pb.Compare_CREATE:
		c.TargetUnion = &pb.Compare_CreateRevision{CreateRevision: pick(g, 0, 0, g.past())}
	case pb.Compare_MOD:
		c.TargetUnion = &pb.Compare_ModRevision{ModRevision: pick(g, 0, 0, g.past())}
	case pb.Compare_VALUE:
		c.TargetUnion = &pb.Compare_Value{Value: g.value()}
	case pb.Compare_LEASE:
		c.TargetUnion = &pb.Compare_Lease{Lease: pick(g, 0, g.lease())}
	}
	return c
}

// refused reports whether etcd surely refuses ops if they overlap.
func refused(ops []*pb.RequestOp) bool {
	for _, op := range ops {
		if op.GetRequestTxn() != nil || bytes.Equal(op.GetRequestDeleteRange().GetRangeEnd(), []byte{0}) {
			return false
		}
	}
	return true
}

// overlap reports whether a key might be deleted and put by ops.
func overlap(ops []*pb.RequestOp) bool {
	var puts [][]byte
	var deletes []*pb.DeleteRangeRequest
	collect(ops, &puts, &deletes)
	for _, d := range deletes {
		for _, key := range puts {
			if within(key, d.Key, d.RangeEnd) {
				return true
			}
		}
	}
	return false
}

func collect(ops []*pb.RequestOp, puts *[][]byte, deletes *[]*pb.DeleteRangeRequest) {
	for _, op := range ops {
		if r := op.GetRequestPut(); r != nil {
			*puts = append(*puts, r.Key)
		}
		if r := op.GetRequestDeleteRange(); r != nil {
			*deletes = append(*deletes, r)
		}
		if r := op.GetRequestTxn(); r != nil {
			collect(r.Success, puts, deletes)
			collect(r.Failure, puts, deletes)
		}
	}
}

// within reports whether key is in the range that etcd means by from and end.
func within(key, from, end []byte) bool {
	switch {
	case len(end) == 0:
		return bytes.Equal(key, from)
	case len(end) == 1 && end[0] == 0:
		return bytes.Compare(key, from) >= 0
	}
	return bytes.Compare(key, from) >= 0 && bytes.Compare(key, end) < 0
}
