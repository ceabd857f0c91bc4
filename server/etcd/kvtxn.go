package etcd

import (
	"context"
	"errors"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"github.com/plinth-io/plinth/sqlstore"
)

// errPast means that a transaction needs old revisions, which must be read before it can run.
var errPast = errors.New("the transaction reads the past")

// errLarge means that the answer of a transaction may be large, and that the transaction holds no place for
// it.
var errLarge = errors.New("the transaction needs a place")

// Txn implements pb.KVServer.
func (s kvService) Txn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	if err := checkTxn(r, s.o.MaxTxnOps); err != nil {
		return nil, err
	}
	if err := checkOverlaps(r); err != nil {
		return nil, err
	}
	if readOnly(r) {
		resp, err := s.readTxn(ctx, r)
		return resp, toStatus(err)
	}
	size := proto.Size(r)
	if err := s.checkSize(size); err != nil {
		return nil, err
	}
	if err := s.admit(ctx, costOfTxn(r)); err != nil {
		return nil, err
	}
	leases := leasesOf(r)
	resp, err := s.runTxn(ctx, r, func(run func(*sqlstore.Tx) error) error {
		_, err := s.store.Keys().Do(ctx, sqlstore.Transaction{Leases: leases, Bytes: size, Run: run})
		return err
	})
	return resp, toStatus(err)
}

func (s kvService) readTxn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	if !serializable(r) {
		if _, err := s.store.Sync(ctx); err != nil {
			return nil, err
		}
	}
	return s.runTxn(ctx, r, func(run func(*sqlstore.Tx) error) error {
		_, err := s.store.Keys().Read(ctx, run)
		return err
	})
}

// leasesOf returns the leases of the keys that a transaction may put.
func leasesOf(r *pb.TxnRequest) (leases []int64) {
	var seen map[int64]bool
	eachPut(r, func(p *pb.PutRequest) {
		if p.Lease == 0 || seen[p.Lease] {
			return
		}
		if seen == nil {
			seen = make(map[int64]bool)
		}
		seen[p.Lease] = true
		leases = append(leases, p.Lease)
	})
	return leases
}

// runTxn runs r through do. Old revisions are read between two attempts, since a running transaction must not
// wait; their contents do not depend on the attempt.
func (s kvService) runTxn(
	ctx context.Context, r *pb.TxnRequest, do func(func(*sqlstore.Tx) error) error,
) (*pb.TxnResponse, error) {
	var past map[*pb.RangeRequest]*pb.RangeResponse
	place, _ := ctx.Value(placeKey{}).(*place)
	for {
		var x txnRun
		var resp *pb.TxnResponse
		err := do(func(tx *sqlstore.Tx) (err error) {
			x = txnRun{ctx: ctx, tx: tx, place: place, past: past, compacted: s.compacted(), steps: maxTxnSteps}
			resp, err = x.run(r)
			return err
		})
		if err == nil {
			resp.Header = s.header(resp.Header.Revision)
			s.metrics.requests.executed(resp)
			return resp, nil
		}
		if errors.Is(err, errLarge) { // nothing was written, and no value is in memory during the wait
			if err := place.take(ctx); err != nil {
				return nil, err
			}
			continue
		}
		if !errors.Is(err, errPast) {
			return nil, err
		}
		if past, err = s.readPast(ctx, past, x.missing); err != nil {
			return nil, err
		}
	}
}

// readPast adds the answers of further requests to past.
func (s kvService) readPast(
	ctx context.Context, past map[*pb.RangeRequest]*pb.RangeResponse, missing []*pb.RangeRequest,
) (map[*pb.RangeRequest]*pb.RangeResponse, error) {
	if _, err := s.store.Sync(ctx); err != nil {
		return nil, err
	}
	if past == nil {
		past = make(map[*pb.RangeRequest]*pb.RangeResponse)
	}
	keys := 0
	for _, p := range past {
		keys += len(p.Kvs)
	}
	for _, r := range missing {
		resp, err := s.readRange(ctx, r)
		if err != nil {
			return nil, err
		}
		if keys += len(resp.Kvs); keys > maxTxnKeys {
			return nil, errTooMuch
		}
		past[r] = resp
	}
	return past, nil
}
