package etcd

import (
	"context"
	"strconv"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The versions that an etcd of release Version reports of its cluster and of its storage.
const (
	clusterVersion = "3.7.0"
	storageVersion = "3.7.0"
	clusterRelease = "3.7" // clusterVersion in the form of Downgrade's answers
	olderRelease   = "3.6" // what an etcd of Version can be downgraded to
)

// maintenanceService is etcd's Maintenance service. Snapshot is in snapshot_send.go, the hashes are in
// hash.go.
type maintenanceService struct {
	pb.UnsafeMaintenanceServer
	s *Server
}

// Status describes this member.
func (m maintenanceService) Status(ctx context.Context, _ *pb.StatusRequest) (*pb.StatusResponse, error) {
	size, err := m.s.store.Source().Size(ctx)
	if err != nil {
		return nil, toStatus(err)
	}
	alarms, err := m.s.readAlarms(ctx)
	if err != nil {
		return nil, toStatus(err)
	}
	revision := m.s.revision()
	out := &pb.StatusResponse{
		Header:           m.s.header(revision),
		Version:          Version,
		DbSize:           size.Bytes,
		DbSizeInUse:      size.Bytes,
		DbSizeQuota:      m.s.o.QuotaBackendBytes,
		Leader:           m.s.memberID,
		RaftIndex:        uint64(revision),
		RaftAppliedIndex: uint64(revision),
		RaftTerm:         raftTerm,
		StorageVersion:   storageVersion,
		DowngradeInfo:    &pb.DowngradeInfo{},
	}
	for _, a := range alarms {
		out.Errors = append(out.Errors, a.String())
	}
	return out, nil
}

// Alarm lists, raises or disarms alarms.
func (m maintenanceService) Alarm(ctx context.Context, r *pb.AlarmRequest) (*pb.AlarmResponse, error) {
	now, err := m.s.readAlarms(ctx)
	if err != nil {
		return nil, toStatus(err)
	}
	a := &pb.AlarmMember{MemberID: r.MemberID, Alarm: r.Alarm}
	out := &pb.AlarmResponse{}
	switch r.Action {
	case pb.AlarmRequest_GET:
		for _, a := range now {
			if r.Alarm == pb.AlarmType_NONE || r.Alarm == a.Alarm {
				out.Alarms = append(out.Alarms, a)
			}
		}
	case pb.AlarmRequest_ACTIVATE:
		if r.Alarm != pb.AlarmType_NONE {
			out.Alarms = append(out.Alarms, a)
			err = m.s.setAlarm(ctx, a, true)
		}
	case pb.AlarmRequest_DEACTIVATE:
		if raised(now, a) {
			out.Alarms = append(out.Alarms, a)
			err = m.s.setAlarm(ctx, a, false)
		}
	default:
		return nil, status.Errorf(codes.InvalidArgument, "etcdserver: unknown action %d", r.Action)
	}
	if err != nil {
		return nil, toStatus(err)
	}
	out.Header = m.s.header(m.s.revision())
	return out, nil
}

// Defragment returns the space of deleted rows to the file system.
func (m maintenanceService) Defragment(ctx context.Context, _ *pb.DefragmentRequest) (*pb.DefragmentResponse, error) {
	if err := m.s.log.Defragment(ctx); err != nil {
		return nil, toStatus(err)
	}
	return &pb.DefragmentResponse{}, nil
}

// MoveLeader answers as in an etcd with one member, because each member is a leader.
func (m maintenanceService) MoveLeader(_ context.Context, r *pb.MoveLeaderRequest) (*pb.MoveLeaderResponse, error) {
	if r.TargetID != m.s.memberID {
		return nil, rpctypes.ErrGRPCBadLeaderTransferee
	}
	return &pb.MoveLeaderResponse{}, nil
}

// Downgrade validates versions as etcd does, but there is nothing to downgrade.
func (m maintenanceService) Downgrade(_ context.Context, r *pb.DowngradeRequest) (*pb.DowngradeResponse, error) {
	switch r.Action {
	case pb.DowngradeRequest_VALIDATE, pb.DowngradeRequest_ENABLE:
		release, ok := releaseOf(r.Version)
		if !ok {
			return nil, rpctypes.ErrGRPCWrongDowngradeVersionFormat
		}
		if release != olderRelease {
			return nil, rpctypes.ErrGRPCInvalidDowngradeTargetVersion
		}
		if r.Action == pb.DowngradeRequest_ENABLE {
			return nil, status.Error(codes.Unimplemented, "etcdserver: there is no storage of etcd's that could be downgraded; restore a snapshot into another etcd instead")
		}
	case pb.DowngradeRequest_CANCEL: // as in etcd, this succeeds if no downgrade is running
	default:
		return nil, status.Error(codes.Unknown, "etcdserver: unknown method")
	}
	return &pb.DowngradeResponse{Header: m.s.header(m.s.revision()), Version: clusterRelease}, nil
}

// releaseOf returns the major and minor numbers of a version, which may have more parts.
func releaseOf(version string) (release string, ok bool) {
	version, _, _ = strings.Cut(version, "+")
	version, _, _ = strings.Cut(version, "-")
	parts := strings.Split(version, ".")
	for _, part := range parts {
		if _, err := strconv.ParseUint(part, 10, 63); err != nil {
			return "", false
		}
	}
	if len(parts) < 2 || len(parts) > 3 {
		return "", false
	}
	return parts[0] + "." + parts[1], true
}
