package etcd

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/plinth-io/plinth/sqlstore"
)

// putKey puts a key, without a check of its lease. The answer has no header.
func putKey(tx *sqlstore.Tx, r *pb.PutRequest) (*pb.PutResponse, error) {
	resp := new(pb.PutResponse)
	key, value, lease := string(r.Key), r.Value, r.Lease
	if r.IgnoreValue || r.IgnoreLease || r.PrevKv {
		before := tx.Get(key)
		if before == nil && (r.IgnoreValue || r.IgnoreLease) {
			return nil, rpctypes.ErrGRPCKeyNotFound
		}
		if before != nil && (r.IgnoreValue || r.PrevKv) {
			old, _ := tx.Value(before)
			if r.IgnoreValue {
				value = old
			}
			if r.PrevKv {
				resp.PrevKv = keyValue(before, old)
			}
		}
		if r.IgnoreLease {
			lease = before.Lease()
		}
	}
	tx.Put(key, value, lease)
	return resp, nil
}

// deleteRange deletes keys. The answer's header has only the revision.
func (x *txnRun) deleteRange(r *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	entries, err := x.entriesIn(spanOf(r.Key, r.RangeEnd))
	if err != nil {
		return nil, err
	}
	resp := &pb.DeleteRangeResponse{Deleted: int64(len(entries))}
	if r.PrevKv && len(entries) > 0 {
		if resp.PrevKvs, err = x.keyValues(entries); err != nil {
			return nil, err
		}
	}
	x.writes += len(entries)
	for _, e := range entries {
		x.tx.Delete(e.Key)
	}
	resp.Header = &pb.ResponseHeader{Revision: x.revision()}
	return resp, nil
}

func (x *txnRun) keyValues(entries []*sqlstore.Entry) ([]*mvccpb.KeyValue, error) {
	values, err := x.values(entries)
	return keyValues(entries, values), err
}
