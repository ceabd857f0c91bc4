package etcd

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// The members of a shared database are the processes that serve it. Each member regularly writes its own
// marks: the time, its name, and its URLs. Marks that are too old do not count, and other members remove
// them. A member of a database that cannot be shared writes no marks.
const (
	markMember = "member/" // followed by the id in hex; the value is the time in Unix milliseconds of the leases' clock
	markName   = "/name"   // follows that
	markURL    = "/url"    // follows that, with a number from 0 to urlsMost-1

	urlsMost  = 8
	markBytes = 255 // the longest value of a mark

	lookEvery   = 5 * time.Second  // between two reads of the alarms of other members
	memberEvery = 10 * time.Second // between two writes of the marks
	memberGone  = 40 * time.Second // when a member counts as gone, after its last write
)

// identify sets the ids, which stay the same as long as database and name do.
func (s *Server) identify() {
	s.clusterID = idOf(s.log.ClusterID())
	s.memberID = idOf(s.log.ClusterID(), s.o.Name)
}

// idOf returns a number other than 0.
func idOf(names ...string) uint64 {
	sum := sha256.Sum256([]byte(strings.Join(names, "\x00")))
	return max(binary.BigEndian.Uint64(sum[:]), 1)
}

func (s *Server) self() *pb.Member {
	return &pb.Member{ID: s.memberID, Name: s.o.Name, ClientURLs: s.o.ClientURLs}
}

// runMember publishes this member and reads the alarms of other members, until ctx ends.
func (s *Server) runMember(ctx context.Context) {
	trouble := failures{what: "reading what other members say"}
	if s.log.Exclusive() {
		s.alarmed(pb.AlarmType_NONE) // reads the alarms from before the start
		return
	}
	var written time.Time
	for {
		_, err := s.readAlarms(ctx)
		if err == nil && time.Since(written) > memberEvery {
			if err = s.announce(ctx); err == nil {
				written = time.Now()
			}
		}
		trouble.note(s, ctx, err)
		if sleep.For(ctx, lookEvery) != nil {
			break
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastBeatWait)
	defer cancel()
	_ = s.log.SetMarks(ctx, unmarked(s.memberID))
}

// announce writes this member's marks, and removes those of members that are gone.
func (s *Server) announce(ctx context.Context) error {
	s.announcing.Lock()
	defer s.announcing.Unlock()
	_, now, err := s.store.Keys().Leases(ctx, []int64{})
	if err != nil {
		return err
	}
	marks, err := s.log.Marks(ctx)
	if err != nil {
		return err
	}
	s.warnOfNamesake(marks, now)
	write := unmarked(s.memberID)
	for id, seen := range membersOf(marks) {
		if now-seen > memberGone.Milliseconds() {
			for name := range unmarked(id) {
				write[name] = ""
			}
		}
	}
	for name, value := range marksOf(s.self(), now) {
		write[name] = value
	}
	mine := write[memberMark(s.memberID)]
	for name, value := range write {
		if marks[name] == value {
			delete(write, name)
		}
	}
	if err := s.log.SetMarks(ctx, write); err != nil {
		return err
	}
	s.announced = mine
	return nil
}

// warnOfNamesake warns once if another process writes this member's marks. At the start, the marks may be
// those of this member before it was killed, so they are no reason to refuse the start. If they have the same
// URLs, they most likely are its own; otherwise the warning names both possibilities.
func (s *Server) warnOfNamesake(marks map[string]string, now int64) {
	urls := memberOf(marks, s.memberID).ClientURLs
	if !s.looked {
		s.looked = true
		seen, there := membersOf(marks)[s.memberID]
		mine := memberOf(marksOf(s.self(), now), s.memberID).ClientURLs
		if ago := now - seen; there && ago <= memberGone.Milliseconds() && !slices.Equal(urls, mine) {
			s.o.Log.Warn("a member of this database with the same name and other URLs was there a moment ago; if it still runs, start each with a --name of its own; if it was this one, all is well",
				"name", s.o.Name, "urls", urls, "ago", time.Duration(ago)*time.Millisecond)
		}
	}
	found := marks[memberMark(s.memberID)]
	if s.announced == "" || found == "" || found == s.announced || s.hasNamesake {
		return
	}
	s.hasNamesake = true
	s.o.Log.Warn("another member of this database has the same name, so that clients see one of the two; start each with a --name of its own",
		"name", s.o.Name, "urls", urls)
}

func memberMark(id uint64) string { return fmt.Sprintf("%s%016x", markMember, id) }

// unmarked returns all marks that a member may have, with empty values, which delete them.
func unmarked(id uint64) map[string]string {
	name := memberMark(id)
	out := map[string]string{name: "", name + markName: ""}
	for i := range urlsMost {
		out[name+markURL+strconv.Itoa(i)] = ""
	}
	return out
}

// marksOf returns the marks of a member, without URLs and names that are too long for a mark.
func marksOf(m *pb.Member, now int64) map[string]string {
	name := memberMark(m.ID)
	out := map[string]string{name: strconv.FormatInt(now, 10), name + markName: m.Name}
	for i, u := range m.ClientURLs[:min(len(m.ClientURLs), urlsMost)] {
		out[name+markURL+strconv.Itoa(i)] = u
	}
	for name, value := range out {
		if len(value) > markBytes {
			delete(out, name)
		}
	}
	return out
}

// membersOf returns the members that have marks, and when each wrote them.
func membersOf(marks map[string]string) map[uint64]int64 {
	out := make(map[uint64]int64)
	for name, value := range marks {
		rest, ok := strings.CutPrefix(name, markMember)
		id, err := strconv.ParseUint(rest, 16, 64)
		seen, bad := strconv.ParseInt(value, 10, 64)
		if ok && err == nil && bad == nil {
			out[id] = seen
		}
	}
	return out
}

// memberOf returns a member as its marks describe it.
func memberOf(marks map[string]string, id uint64) *pb.Member {
	name := memberMark(id)
	m := &pb.Member{ID: id, Name: marks[name+markName]}
	for i := range urlsMost {
		if u := marks[name+markURL+strconv.Itoa(i)]; u != "" {
			m.ClientURLs = append(m.ClientURLs, u)
		}
	}
	return m
}

// members returns the members that are alive, sorted by id.
func (s *Server) members(ctx context.Context) ([]*pb.Member, error) {
	out := []*pb.Member{s.self()}
	if s.log.Exclusive() {
		return out, nil
	}
	_, now, err := s.store.Keys().Leases(ctx, []int64{})
	if err != nil {
		return nil, err
	}
	marks, err := s.log.Marks(ctx)
	if err != nil {
		return nil, err
	}
	for id, seen := range membersOf(marks) {
		if id != s.memberID && now-seen <= memberGone.Milliseconds() {
			out = append(out, memberOf(marks, id))
		}
	}
	slices.SortFunc(out, func(a, b *pb.Member) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

// clusterService is etcd's Cluster service. A member joins when a server is started on the database, and
// leaves when it stops.
type clusterService struct {
	pb.UnsafeClusterServer
	s *Server
}

// MemberList lists the servers of the database.
func (c clusterService) MemberList(ctx context.Context, _ *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	members, err := c.s.members(ctx)
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.MemberListResponse{Header: c.s.header(0), Members: members}, nil
}

func notByRequest(instead string) error {
	return status.Error(codes.Unimplemented, "etcdserver: members are the servers that run on the database; "+instead)
}

// MemberAdd answers how a member is added.
func (clusterService) MemberAdd(_ context.Context, r *pb.MemberAddRequest) (*pb.MemberAddResponse, error) {
	for _, text := range r.PeerURLs {
		if u, err := url.Parse(text); err != nil || u.Host == "" && !strings.HasPrefix(u.Scheme, "unix") {
			return nil, rpctypes.ErrGRPCMemberBadURLs
		}
	}
	if len(r.PeerURLs) == 0 {
		return nil, rpctypes.ErrGRPCMemberBadURLs
	}
	return nil, notByRequest("to add one, start another server on it")
}

// known returns etcd's error if there is no member with the id.
func (c clusterService) known(ctx context.Context, id uint64) error {
	members, err := c.s.members(ctx)
	if err != nil {
		return toStatus(err)
	}
	if !slices.ContainsFunc(members, func(m *pb.Member) bool { return m.ID == id }) {
		return rpctypes.ErrGRPCMemberNotFound
	}
	return nil
}

// MemberRemove answers how a member is removed.
func (c clusterService) MemberRemove(ctx context.Context, r *pb.MemberRemoveRequest) (*pb.MemberRemoveResponse, error) {
	if err := c.known(ctx, r.ID); err != nil {
		return nil, err
	}
	return nil, notByRequest("to remove one, stop it")
}

// MemberUpdate answers how a member is changed.
func (c clusterService) MemberUpdate(ctx context.Context, r *pb.MemberUpdateRequest) (*pb.MemberUpdateResponse, error) {
	if err := c.known(ctx, r.ID); err != nil {
		return nil, err
	}
	return nil, notByRequest("none has a peer URL")
}

// MemberPromote answers that the member is not a learner.
func (c clusterService) MemberPromote(ctx context.Context, r *pb.MemberPromoteRequest) (*pb.MemberPromoteResponse, error) {
	if err := c.known(ctx, r.ID); err != nil {
		return nil, err
	}
	return nil, rpctypes.ErrGRPCMemberNotLearner
}
