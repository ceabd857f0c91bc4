package etcd

import (
	"context"
	"hash"
	"hash/crc32"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// hashTries is how often a hash is computed again because rows were compacted meanwhile.
const hashTries = 5

var errBusy = status.Error(codes.Unavailable, "etcdserver: compaction went on while the hash was computed; try again")

func newHash() hash.Hash32 { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }

// compactedBy returns the compacted revision that etcd reports for a floor.
func compactedBy(floor int64) int64 {
	revision, _ := changelog.Split(floor)
	if revision <= 0 {
		return -1
	}
	return revision
}

// HashKV returns the hash that etcd has for the same history up to a revision.
func (m maintenanceService) HashKV(ctx context.Context, r *pb.HashKVRequest) (*pb.HashKVResponse, error) {
	for range hashTries {
		head, err := m.s.log.Head(ctx)
		if err != nil {
			return nil, toStatus(err)
		}
		current, compacted := revisionOf(head.Revision), compactedBy(head.Floor)
		if r.Revision > 0 && r.Revision < compacted {
			return nil, rpctypes.ErrGRPCCompacted
		}
		if r.Revision > current {
			return nil, rpctypes.ErrGRPCFutureRev
		}
		revision := r.Revision
		if revision == 0 {
			revision = current
		}
		h := newHash()
		h.Write([]byte(keyBucket))
		same := true
		if revision > 0 { // etcd accepts a negative revision, up to which there is nothing
			same, err = m.s.hashHistory(ctx, h, head, min(head.Revision, changelog.LastID(revision)))
		}
		if err != nil {
			return nil, toStatus(err)
		}
		if same {
			return &pb.HashKVResponse{Header: m.s.header(current), Hash: h.Sum32(), CompactRevision: compacted, HashRevision: revision}, nil
		}
	}
	return nil, errBusy
}

// revisionOf returns the revision of an id; for 0, that of an empty key space.
func revisionOf(id int64) int64 {
	revision, _ := changelog.Split(id)
	return max(revision, firstRevision)
}

// hashHistory adds the bucket "key" as it was at an id to h. If rows are compacted meanwhile, it returns
// false, and h must be discarded.
//
// Of the compacted rows, etcd hashes those that are in force at the id, and not at the compacted revision,
// unless no row is in force at the id. It leaves out the tombstones of the compacted revision.
func (s *Server) hashHistory(ctx context.Context, h hash.Hash, head changelog.Head, at int64) (same bool, err error) {
	kept, some, err := s.inForceAt(ctx, at, head.Floor)
	if err == nil && !some {
		kept, _, err = s.inForceAt(ctx, head.Floor, head.Floor)
	}
	if err == nil {
		err = s.eachRow(ctx, 0, at, func(r *changelog.Row) error {
			if r.Revision <= head.Floor && (r.Deleted || !kept.has(r.Revision)) {
				return nil
			}
			p, err := revisionPair(r)
			h.Write(p.key)
			h.Write(p.value)
			return err
		})
	}
	now, headErr := s.log.Head(ctx)
	if headErr != nil {
		return false, headErr
	}
	if now.Floor != head.Floor {
		return false, nil
	}
	return true, err
}

// Hash returns the hash of all buckets that an etcd with the same members would return.
func (m maintenanceService) Hash(ctx context.Context, _ *pb.HashRequest) (*pb.HashResponse, error) {
	for range hashTries {
		head, err := m.s.log.Head(ctx)
		if err != nil {
			return nil, toStatus(err)
		}
		h := newHash()
		same, err := m.s.hashAll(ctx, h, head)
		if err != nil {
			return nil, toStatus(err)
		}
		if same {
			return &pb.HashResponse{Header: m.s.header(revisionOf(head.Revision)), Hash: h.Sum32()}, nil
		}
	}
	return nil, errBusy
}

func (s *Server) hashAll(ctx context.Context, h hash.Hash, head changelog.Head) (same bool, err error) {
	small, err := s.smallBuckets(ctx, revisionOf(head.Revision), compactedBy(head.Floor))
	if err != nil {
		return false, err
	}
	leases, _, err := s.store.Keys().Leases(ctx, nil)
	if err != nil {
		return false, err
	}
	for _, l := range leases {
		small["lease"] = append(small["lease"], leasePair(l, 0))
	}
	for _, bucket := range buckets {
		h.Write([]byte(bucket))
		if bucket == keyBucket {
			if same, err := s.hashHistory(ctx, h, head, head.Revision); !same || err != nil {
				return false, err
			}
		}
		for _, p := range small[bucket] {
			switch string(p.key) {
			case metaIndex, metaTerm, metaStorage: // in an etcd, these change by themselves
			default:
				h.Write(p.key)
				h.Write(p.value)
			}
		}
	}
	return true, nil
}
