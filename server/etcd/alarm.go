package etcd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Each alarm is a mark of the log, so that all members share the alarms and a restart keeps them.
const markAlarm = "alarm/" // followed by the number of the type, a slash, and the member's id in hex

// alarms are the alarms that this member knows. On a shared database, others may have just raised or disarmed
// one.
type alarms struct {
	mu    sync.Mutex                        // held while marks are written, or read into known
	known atomic.Pointer[[]*pb.AlarmMember] // nil until they have been read
}

func markOf(a *pb.AlarmMember) string {
	return fmt.Sprintf("%s%d/%016x", markAlarm, a.Alarm, a.MemberID)
}

// alarmsOf returns the alarms in marks, by type and member.
func alarmsOf(marks map[string]string) []*pb.AlarmMember {
	var out []*pb.AlarmMember
	for name := range marks {
		rest, ok := strings.CutPrefix(name, markAlarm)
		a := new(pb.AlarmMember)
		if n, _ := fmt.Sscanf(rest, "%d/%x", &a.Alarm, &a.MemberID); ok && n == 2 {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b *pb.AlarmMember) int {
		return cmp.Or(cmp.Compare(a.Alarm, b.Alarm), cmp.Compare(a.MemberID, b.MemberID))
	})
	return out
}

// raised reports whether an alarm is among those.
func raised(those []*pb.AlarmMember, alarm *pb.AlarmMember) bool {
	return slices.ContainsFunc(those, func(a *pb.AlarmMember) bool {
		return a.Alarm == alarm.Alarm && a.MemberID == alarm.MemberID
	})
}

// readAlarms reads the alarms of all members.
func (s *Server) readAlarms(ctx context.Context) ([]*pb.AlarmMember, error) {
	s.alarms.mu.Lock()
	defer s.alarms.mu.Unlock()
	return s.rereadAlarms(ctx)
}

func (s *Server) rereadAlarms(ctx context.Context) ([]*pb.AlarmMember, error) {
	marks, err := s.log.Marks(ctx)
	if err != nil {
		return nil, err
	}
	now := alarmsOf(marks)
	s.alarms.known.Store(&now)
	return now, nil
}

// setAlarm raises or disarms an alarm.
func (s *Server) setAlarm(ctx context.Context, a *pb.AlarmMember, on bool) error {
	s.alarms.mu.Lock()
	defer s.alarms.mu.Unlock()
	value := ""
	if on {
		value = a.Alarm.String()
	}
	if err := s.log.SetMarks(ctx, map[string]string{markOf(a): value}); err != nil {
		return err
	}
	_, err := s.rereadAlarms(ctx)
	return err
}

// alarmed reports whether any member has an alarm of a type, as far as this member knows.
func (s *Server) alarmed(t pb.AlarmType) bool {
	known := s.alarms.known.Load()
	if known == nil {
		ctx, cancel := context.WithTimeout(context.Background(), alarmTimeout)
		defer cancel()
		now, err := s.readAlarms(ctx)
		if err != nil {
			return false // the database is unavailable, which the request will report
		}
		known = &now
	}
	return slices.ContainsFunc(*known, func(a *pb.AlarmMember) bool { return a.Alarm == t })
}

// corrupt reports whether there is a CORRUPT alarm. With it, etcd serves none of its keys.
func (s *Server) corrupt() bool { return s.alarmed(pb.AlarmType_CORRUPT) }

// What etcd counts for a lease, and for a put in addition to its key and value.
const (
	leaseCost = 64
	putCost   = 256
)

// admit returns the error that etcd would return for a request because of its alarms and its quota. cost is
// how many bytes the request may add to the database; 0 for reads and deletes.
func (s *Server) admit(ctx context.Context, cost int) error {
	if cost > 0 && s.full(ctx, cost) {
		return rpctypes.ErrGRPCNoSpace
	}
	if s.corrupt() {
		return rpctypes.ErrGRPCCorrupt
	}
	if cost > 0 && s.alarmed(pb.AlarmType_NOSPACE) {
		return rpctypes.ErrGRPCNoSpace
	}
	return nil
}

// full reports whether the database has no room for cost more bytes, and raises the alarm if so.
func (s *Server) full(ctx context.Context, cost int) bool {
	if !s.quota.exceeded(ctx, int64(cost)) {
		return false
	}
	mine := &pb.AlarmMember{MemberID: s.memberID, Alarm: pb.AlarmType_NOSPACE}
	if known := s.alarms.known.Load(); known != nil && raised(*known, mine) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, alarmTimeout)
	defer cancel()
	if err := s.setAlarm(ctx, mine, true); err != nil {
		s.o.Log.Warn("the alarm that the database has reached its quota could not be written", "err", err)
		return true
	}
	s.o.Log.Warn("the database has reached its quota; only deletes and compaction are taken until the alarm is disarmed", "quota", s.o.QuotaBackendBytes)
	return true
}
