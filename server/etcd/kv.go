package etcd

import (
	"context"
	"math/bits"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/protobuf/proto"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// kvService is etcd's KV service. It checks in etcd's order, so that a request with several faults gets the
// same error:
//
//  1. the form of the request (kvcheck.go, kvoverlap.go);
//  2. its size;
//  3. alarms and the quota;
//  4. the state: leases, missing keys, revisions.
type kvService struct {
	pb.UnsafeKVServer // a missing method is a compile error
	*Server
}

// Range implements pb.KVServer.
func (s kvService) Range(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	if err := checkRange(r); err != nil {
		return nil, err
	}
	if !r.Serializable {
		if _, err := s.store.Sync(ctx); err != nil {
			return nil, toStatus(err)
		}
	}
	resp, err := s.readRange(ctx, r)
	if err != nil {
		return nil, toStatus(err)
	}
	s.metrics.requests.ranges.Inc()
	return resp, nil
}

// Put implements pb.KVServer.
func (s kvService) Put(ctx context.Context, r *pb.PutRequest) (*pb.PutResponse, error) {
	if err := checkPut(r); err != nil {
		return nil, err
	}
	size := proto.Size(r)
	if err := s.checkSize(size); err != nil {
		return nil, err
	}
	if err := s.admit(ctx, costOfPut(r)); err != nil {
		return nil, err
	}
	var resp *pb.PutResponse
	t := sqlstore.Transaction{Bytes: size, Run: func(tx *sqlstore.Tx) (err error) {
		resp, err = s.put(tx, r)
		return err
	}}
	if r.Lease != 0 {
		t.Leases = []int64{r.Lease}
	}
	if _, err := s.store.Keys().Do(ctx, t); err != nil {
		return nil, toStatus(err)
	}
	s.metrics.requests.puts.Inc()
	return resp, nil
}

func (s kvService) put(tx *sqlstore.Tx, r *pb.PutRequest) (*pb.PutResponse, error) {
	if r.Lease != 0 {
		if _, ok := tx.Lease(r.Lease); !ok {
			return nil, rpctypes.ErrGRPCLeaseNotFound
		}
	}
	resp, err := putKey(tx, r)
	if err != nil {
		return nil, err
	}
	resp.Header = s.header(tx.Revision() + 1)
	return resp, nil
}

// DeleteRange implements pb.KVServer.
func (s kvService) DeleteRange(ctx context.Context, r *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	if err := checkDelete(r); err != nil {
		return nil, err
	}
	if err := s.checkSize(proto.Size(r)); err != nil {
		return nil, err
	}
	if err := s.admit(ctx, 0); err != nil {
		return nil, err
	}
	var resp *pb.DeleteRangeResponse
	_, err := s.store.Keys().Do(ctx, sqlstore.Transaction{Run: func(tx *sqlstore.Tx) (err error) {
		x := txnRun{ctx: ctx, tx: tx, steps: maxTxnSteps}
		if resp, err = x.deleteRange(r); err != nil {
			return err
		}
		resp.Header = s.header(resp.Header.Revision)
		return nil
	}})
	if err != nil {
		return nil, toStatus(err)
	}
	s.metrics.requests.deletes.Inc()
	return resp, nil
}

// Compact implements pb.KVServer.
func (s kvService) Compact(ctx context.Context, r *pb.CompactionRequest) (*pb.CompactionResponse, error) {
	if err := s.checkSize(proto.Size(r)); err != nil {
		return nil, err
	}
	if err := s.admit(ctx, 0); err != nil {
		return nil, err
	}
	if _, err := s.store.Sync(ctx); err != nil {
		return nil, toStatus(err)
	}
	switch {
	case r.Revision <= s.compacted():
		return nil, rpctypes.ErrGRPCCompacted
	case r.Revision > s.revision():
		return nil, rpctypes.ErrGRPCFutureRev
	}
	found, err := s.store.Keys().CutTo(ctx, r.Revision, r.Physical)
	if err != nil {
		return nil, toStatus(err)
	}
	if found > 0 && found >= r.Revision { // another member was faster
		return nil, rpctypes.ErrGRPCCompacted
	}
	return &pb.CompactionResponse{Header: s.header(s.revision())}, nil
}

// compacted returns the revision of the last compaction; -1 if there was none. The state at that revision can
// still be read.
func (s *Server) compacted() int64 {
	floor := s.store.Floor()
	if floor == 0 {
		return -1
	}
	revision, _ := changelog.Split(floor)
	return revision
}

// checkSize bounds a request that etcd would send through raft, including its envelope: a header of 13 bytes,
// and the request's tag and length.
func (s kvService) checkSize(size int) error {
	const header, tag = 13, 1
	length := (bits.Len(uint(size|1)) + 6) / 7
	if header+tag+length+size > s.o.MaxRequestBytes {
		return rpctypes.ErrGRPCRequestTooLarge
	}
	return nil
}
