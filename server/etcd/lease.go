package etcd

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// The bounds of the time to live of a lease, in seconds. A shorter time is raised to minTTL, which is one and
// a half times the 1 s that an election takes in an etcd with default settings, rounded up.
const (
	minTTL = 2
	maxTTL = 9_000_000_000
)

// leaseService is etcd's Lease service.
type leaseService struct {
	pb.UnsafeLeaseServer
	s *Server
}

// LeaseGrant makes a lease with the requested id, or with a new one.
func (l leaseService) LeaseGrant(ctx context.Context, r *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	if err := l.s.admit(ctx, leaseCost); err != nil {
		return nil, err
	}
	if r.TTL > maxTTL {
		return nil, rpctypes.ErrGRPCLeaseTTLTooLarge
	}
	lease := changelog.Lease{ID: r.ID, TTL: max(r.TTL, minTTL)}
	for lease.ID == 0 {
		lease.ID = rand.Int64()
	}
	revision, err := l.s.grant(ctx, lease)
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.LeaseGrantResponse{Header: l.s.header(revision), ID: lease.ID, TTL: lease.TTL}, nil
}

func (s *Server) grant(ctx context.Context, lease changelog.Lease) (revision int64, err error) {
	// This comes first, so that a time in which no server was running is not added to the new lease.
	if err := s.ensureBeat(ctx); err != nil {
		return 0, err
	}
	out, err := s.store.Keys().Do(ctx, sqlstore.Transaction{Leases: []int64{lease.ID}, Run: func(tx *sqlstore.Tx) error {
		if _, ok := tx.Lease(lease.ID); ok {
			return rpctypes.ErrGRPCLeaseExist
		}
		tx.Grant(lease.ID, lease.TTL)
		return nil
	}})
	if err != nil {
		return 0, err
	}
	s.lessor.granted()
	s.metrics.granted.Inc()
	return max(out.Revision, firstRevision), nil
}

// LeaseRevoke deletes a lease and its keys.
func (l leaseService) LeaseRevoke(ctx context.Context, r *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	if l.s.corrupt() {
		return nil, rpctypes.ErrGRPCCorrupt
	}
	out, err := l.s.store.Keys().Do(ctx, sqlstore.Transaction{Leases: []int64{r.ID}, Run: func(tx *sqlstore.Tx) error {
		if _, ok := tx.Lease(r.ID); !ok {
			return rpctypes.ErrGRPCLeaseNotFound
		}
		tx.Revoke(r.ID)
		return nil
	}})
	if err != nil {
		return nil, toStatus(err)
	}
	l.s.metrics.revoked.Inc()
	return &pb.LeaseRevokeResponse{Header: l.s.header(max(out.Revision, firstRevision))}, nil
}

// LeaseTimeToLive answers the remaining time of a lease; -1 if it is gone.
func (l leaseService) LeaseTimeToLive(ctx context.Context, r *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error) {
	if err := l.s.ensureBeat(ctx); err != nil {
		return nil, toStatus(err)
	}
	leases, now, err := l.s.store.Keys().Leases(ctx, []int64{r.ID})
	if err != nil {
		return nil, toStatus(err)
	}
	if len(leases) == 0 {
		return &pb.LeaseTimeToLiveResponse{Header: l.s.header(l.s.revision()), ID: r.ID, TTL: -1}, nil
	}
	out := &pb.LeaseTimeToLiveResponse{ID: r.ID, TTL: secondsLeft(leases[0], now), GrantedTTL: leases[0].TTL}
	if r.Keys {
		if _, err := l.s.store.Sync(ctx); err != nil {
			return nil, toStatus(err)
		}
		for _, key := range l.s.store.Keys().Attached(r.ID) {
			out.Keys = append(out.Keys, []byte(key))
		}
	}
	out.Header = l.s.header(l.s.revision())
	return out, nil
}

// secondsLeft returns the whole seconds that a lease has left. A moment after a grant, that is already less
// than was granted, as in etcd, whose clock is finer than milliseconds.
func secondsLeft(l changelog.Lease, now int64) int64 { return max(0, l.Expires-now-1) / 1000 }

// LeaseLeases lists all leases, in the order in which they expire.
func (l leaseService) LeaseLeases(ctx context.Context, _ *pb.LeaseLeasesRequest) (*pb.LeaseLeasesResponse, error) {
	leases, _, err := l.s.store.Keys().Leases(ctx, nil)
	if err != nil {
		return nil, toStatus(err)
	}
	slices.SortStableFunc(leases, func(a, b changelog.Lease) int { return cmp.Compare(a.Expires, b.Expires) })
	out := &pb.LeaseLeasesResponse{Header: l.s.header(l.s.revision()), Leases: make([]*pb.LeaseStatus, len(leases))}
	for i, lease := range leases {
		out.Leases[i] = &pb.LeaseStatus{ID: lease.ID}
	}
	return out, nil
}
