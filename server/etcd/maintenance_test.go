package etcd

import (
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/plinth-io/plinth/dialects/logtest"
)

func TestStatus(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		m := serveOn(t, d.Fresh(t), false, Options{})
		m.put(t, "a", "1", 0)
		m.alarm(t, alarmOn, alarmFull, 5)
		got, err := m.maintenance.Status(bounded(t), &pb.StatusRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if got.DbSize <= 0 || got.DbSizeInUse <= 0 || got.DbSizeInUse > got.DbSize {
			t.Errorf("size %d, in use %d", got.DbSize, got.DbSizeInUse)
		}
		got.DbSize, got.DbSizeInUse = 0, 0
		want := &pb.StatusResponse{
			Header:  m.header(2),
			Version: Version, StorageVersion: "3.7.0", DbSizeQuota: 2 << 30, Leader: m.memberID,
			RaftIndex: 2, RaftAppliedIndex: 2, RaftTerm: 1, DowngradeInfo: &pb.DowngradeInfo{},
			Errors: []string{(&pb.AlarmMember{MemberID: 5, Alarm: pb.AlarmType_NOSPACE}).String()},
		}
		if !proto.Equal(got, want) {
			t.Errorf("status %v\nwant %v", got, want)
		}
	})
}

func TestDefragment(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		m := serveOn(t, d.Fresh(t), false, Options{})
		m.put(t, "a", "1", 0)
		if _, err := m.maintenance.Defragment(bounded(t), &pb.DefragmentRequest{}); err != nil {
			t.Error(err)
		}
		if got := m.keys(t); len(got) != 1 {
			t.Errorf("keys: %q", got)
		}
	})
}

func TestMoveLeader(t *testing.T) {
	m := serveOn(t, "sqlite://:memory:", false, Options{})
	if _, err := m.maintenance.MoveLeader(bounded(t), &pb.MoveLeaderRequest{TargetID: m.memberID}); err != nil {
		t.Errorf("move the leader to itself: %v", err)
	}
	_, err := m.maintenance.MoveLeader(bounded(t), &pb.MoveLeaderRequest{TargetID: m.memberID + 1})
	wantError(t, "move the leader", err, rpctypes.ErrGRPCBadLeaderTransferee)
}

func TestDowngrade(t *testing.T) {
	m := serveOn(t, "sqlite://:memory:", false, Options{})
	const validate, enable, cancel = pb.DowngradeRequest_VALIDATE, pb.DowngradeRequest_ENABLE, pb.DowngradeRequest_CANCEL
	for _, test := range []struct {
		action  pb.DowngradeRequest_DowngradeAction
		version string
		err     error
	}{
		{validate, "3.6", nil}, {validate, "3.6.9", nil}, {validate, "3.6.0-rc.1", nil}, {cancel, "", nil},
		{validate, "3.5", rpctypes.ErrGRPCInvalidDowngradeTargetVersion},
		{enable, "3.7", rpctypes.ErrGRPCInvalidDowngradeTargetVersion},
		{validate, "3", rpctypes.ErrGRPCWrongDowngradeVersionFormat},
		{validate, "", rpctypes.ErrGRPCWrongDowngradeVersionFormat},
		{enable, "x.y", rpctypes.ErrGRPCWrongDowngradeVersionFormat},
		{validate, "3.6.1.2", rpctypes.ErrGRPCWrongDowngradeVersionFormat},
	} {
		r, err := m.maintenance.Downgrade(bounded(t), &pb.DowngradeRequest{Action: test.action, Version: test.version})
		wantError(t, test.action.String()+" "+test.version, err, test.err)
		if err == nil && (r.Version != "3.7" || r.Header == nil) {
			t.Errorf("%v %s: %v", test.action, test.version, r)
		}
	}
	_, err := m.maintenance.Downgrade(bounded(t), &pb.DowngradeRequest{Action: enable, Version: "3.6"})
	wantCode(t, "enable a downgrade", err, codes.Unimplemented)
}
