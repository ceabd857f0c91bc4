package etcd

import (
	"context"
	"fmt"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"

	"github.com/plinth-io/plinth/dialects/logtest"
)

const (
	alarmGet  = pb.AlarmRequest_GET
	alarmOn   = pb.AlarmRequest_ACTIVATE
	alarmOff  = pb.AlarmRequest_DEACTIVATE
	noAlarm   = pb.AlarmType_NONE
	alarmFull = pb.AlarmType_NOSPACE
	alarmBad  = pb.AlarmType_CORRUPT
)

// alarm returns the alarms of an answer, as NOSPACE/5 for that of the member 5.
func (m *endpoint) alarm(t testing.TB, action pb.AlarmRequest_AlarmAction, kind pb.AlarmType, member uint64) string {
	t.Helper()
	r, err := m.maintenance.Alarm(bounded(t), &pb.AlarmRequest{Action: action, Alarm: kind, MemberID: member})
	if err != nil || r.Header.GetMemberId() != m.memberID {
		t.Fatalf("alarm: %v, %v", r, err)
	}
	var out []string
	for _, a := range r.Alarms {
		out = append(out, fmt.Sprintf("%v/%d", a.Alarm, a.MemberID))
	}
	return strings.Join(out, " ")
}

func TestAlarm(t *testing.T) {
	dsn := logtest.SQLite(t)
	m := serveOn(t, dsn, false, Options{})
	for i, step := range []struct {
		action pb.AlarmRequest_AlarmAction
		kind   pb.AlarmType
		member uint64
		want   string
	}{
		{alarmGet, noAlarm, 0, ""},
		{alarmOff, alarmFull, 5, ""},
		{alarmOn, noAlarm, 5, ""},
		{alarmOn, alarmFull, 5, "NOSPACE/5"},
		{alarmOn, alarmFull, 5, "NOSPACE/5"},
		{alarmOn, alarmFull, 4, "NOSPACE/4"},
		{alarmOn, alarmBad, 1<<64 - 1, "CORRUPT/18446744073709551615"},
		{alarmGet, noAlarm, 0, "NOSPACE/4 NOSPACE/5 CORRUPT/18446744073709551615"},
		{alarmGet, alarmFull, 0, "NOSPACE/4 NOSPACE/5"},
		{alarmGet, alarmBad, 4, "CORRUPT/18446744073709551615"},
		{alarmOff, noAlarm, 5, ""},
		{alarmOff, alarmFull, 0, ""},
		{alarmOff, alarmFull, 5, "NOSPACE/5"},
		{alarmGet, noAlarm, 0, "NOSPACE/4 CORRUPT/18446744073709551615"},
	} {
		if got := m.alarm(t, step.action, step.kind, step.member); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
	_, err := m.maintenance.Alarm(bounded(t), &pb.AlarmRequest{Action: 7})
	wantCode(t, "an action that there is not", err, codes.InvalidArgument)
	m.stop()
	m = serveOn(t, dsn, false, Options{})
	if !m.noSpace() || !m.corrupt() {
		t.Error("alarms are forgotten by a restart")
	}
}

// With CORRUPT nothing is granted or revoked, with NOSPACE nothing is granted.
func TestAlarmRefuses(t *testing.T) {
	m := serveOn(t, "sqlite://:memory:", false, Options{})
	m.grant(t, 1, 100)
	grant := func() error {
		_, err := m.lease.LeaseGrant(bounded(t), &pb.LeaseGrantRequest{TTL: 60})
		return err
	}
	revoke := func(id int64) error {
		_, err := m.lease.LeaseRevoke(bounded(t), &pb.LeaseRevokeRequest{ID: id})
		return err
	}
	m.alarm(t, alarmOn, alarmFull, 5)
	wantError(t, "grant", grant(), rpctypes.ErrGRPCNoSpace)
	if err := m.admit(t.Context(), 0); err != nil {
		t.Errorf("what writes nothing: %v", err)
	}
	m.alarm(t, alarmOn, alarmBad, 5)
	wantError(t, "grant", grant(), rpctypes.ErrGRPCCorrupt)
	wantError(t, "revoke", revoke(1), rpctypes.ErrGRPCCorrupt)
	wantError(t, "what writes nothing", m.admit(t.Context(), 0), rpctypes.ErrGRPCCorrupt)
	m.alarm(t, alarmOff, alarmBad, 5)
	wantError(t, "grant", grant(), rpctypes.ErrGRPCNoSpace)
	if err := revoke(1); err != nil {
		t.Errorf("revoke: %v", err)
	}
	m.alarm(t, alarmOff, alarmFull, 5)
	if err := grant(); err != nil {
		t.Errorf("grant: %v", err)
	}
}

// Members of a database hear of each other's alarms.
func TestAlarmShared(t *testing.T) {
	logtest.EachShared(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		m1, m2 := serveOn(t, dsn, true, Options{Name: "m1"}), serveOn(t, dsn, true, Options{Name: "m2"})
		if m1.noSpace() || m2.noSpace() {
			t.Fatal("an alarm that nobody has raised")
		}
		m1.alarm(t, alarmOn, alarmFull, 5)
		if got := m2.alarm(t, alarmGet, noAlarm, 0); got != "NOSPACE/5" {
			t.Errorf("alarms at another member: %q", got)
		}
		eventually(t, "dropped", func() bool { m2.alarm(t, alarmOff, alarmFull, 5); return !m1.noSpace() })
		m1.alarm(t, alarmOn, alarmFull, 5)
		eventually(t, "raised by itself", m2.noSpace)
	})
}

// noSpace says whether only requests that write nothing but deletes are taken.
func (s *Server) noSpace() bool {
	return s.full(context.Background(), 0) || s.alarmed(pb.AlarmType_NOSPACE)
}
