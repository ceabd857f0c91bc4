package etcdtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Record is what an endpoint has answered to a sequence.
type Record struct {
	Sent    []string            // each request as it was sent
	Answers []string            // the answer to each request, without what differs between servers
	Watches map[string][]string // what each watch received, by "stream/id"
	Faults  []string            // what must not happen, whatever another server does
}

// Play sends steps one after the other, and returns the answers and what the watches received.
func Play(ctx context.Context, conn *grpc.ClientConn, steps []Step) (*Record, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p, err := newPlayer(ctx, conn)
	if err != nil {
		return nil, err
	}
	for _, s := range steps {
		r := proto.Clone(s.Request)
		resolve(r, func(ago int64) int64 { return max(p.head-ago, 1) })
		p.record.Sent = append(p.record.Sent, fmt.Sprintf("%T %s", r, r))
		if a, isAlarm := r.(*pb.AlarmRequest); isAlarm {
			a.MemberID = p.member
		}
		answer := p.send(Step{Request: r, Stream: s.Stream})
		p.record.Answers = append(p.record.Answers, answer)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	p.settleAll()
	for i, s := range p.streams {
		s.into(p.record, i)
	}
	return p.record, nil
}

// player is the one client of a sequence.
type player struct {
	ctx         context.Context
	kv          pb.KVClient
	lease       pb.LeaseClient
	maintenance pb.MaintenanceClient
	watch       pb.WatchClient
	member      uint64
	head        int64          // newest revision seen
	compacted   map[int64]bool // revisions that were compacted
	streams     [Streams]*stream
	change      func(answer) // changes an answer before it is recorded
	record      *Record
}

func newPlayer(ctx context.Context, conn *grpc.ClientConn) (*player, error) {
	p := &player{
		ctx: ctx, kv: pb.NewKVClient(conn), lease: pb.NewLeaseClient(conn), maintenance: pb.NewMaintenanceClient(conn),
		watch: pb.NewWatchClient(conn), record: &Record{Watches: map[string][]string{}}, compacted: map[int64]bool{},
	}
	first, err := p.kv.Range(ctx, &pb.RangeRequest{Key: []byte("a")})
	if err != nil {
		return nil, fmt.Errorf("first request: %w", err)
	}
	p.member, p.head = first.Header.MemberId, first.Header.Revision
	for i := range p.streams {
		if p.streams[i], err = openStream(ctx, p.watch); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// send sends one request and returns the answer as a line.
func (p *player) send(s Step) string {
	switch r := s.Request.(type) {
	case *pb.RangeRequest:
		return answerOf(p, r, p.kv.Range) + p.streamed(r)
	case *pb.PutRequest:
		return answerOf(p, r, p.kv.Put)
	case *pb.DeleteRangeRequest:
		return answerOf(p, r, p.kv.DeleteRange)
	case *pb.TxnRequest:
		return answerOf(p, r, p.kv.Txn)
	case *pb.CompactionRequest:
		// What a watch receives about the past, including previous values, depends on whether it received it
		// before the compaction.
		p.settleAll()
		answer := answerOf(p, r, p.kv.Compact)
		if !strings.HasPrefix(answer, "error ") {
			p.compacted[r.Revision] = true
		}
		return answer
	case *pb.LeaseGrantRequest:
		return answerOf(p, r, p.lease.LeaseGrant)
	case *pb.LeaseRevokeRequest:
		return answerOf(p, r, p.lease.LeaseRevoke)
	case *pb.LeaseKeepAliveRequest:
		return answerOf(p, r, p.keepAlive)
	case *pb.LeaseTimeToLiveRequest:
		return answerOf(p, r, p.lease.LeaseTimeToLive)
	case *pb.LeaseLeasesRequest:
		return answerOf(p, r, p.lease.LeaseLeases)
	case *pb.StatusRequest:
		return answerOf(p, r, p.maintenance.Status)
	case *pb.HashKVRequest:
		if p.compacted[r.Revision] {
			// etcd answers this hash from memory soon after a compaction, because the compaction computes it.
			_ = answerOf(p, r, p.maintenance.HashKV)
			return "not compared"
		}
		return answerOf(p, r, p.maintenance.HashKV)
	case *pb.AlarmRequest:
		return answerOf(p, r, p.maintenance.Alarm)
	case *pb.WatchRequest:
		return p.sendWatch(s.Stream, r)
	}
	return fmt.Sprintf("no such request: %T", s.Request)
}

// answer is an answer of etcd.
type answer interface {
	proto.Message
	GetHeader() *pb.ResponseHeader
	String() string
}

// streamed returns the joined parts of a stream. An etcd loses keys if they must be sorted, and does not
// report that.
func (p *player) streamed(r *pb.RangeRequest) string {
	if r.SortOrder == pb.RangeRequest_NONE && r.SortTarget != pb.RangeRequest_KEY {
		return ""
	}
	return "; stream: " + answerOf(p, r, func(ctx context.Context, r *pb.RangeRequest, _ ...grpc.CallOption) (*pb.RangeResponse, error) {
		return rangeStream(ctx, p.kv, r)
	})
}

// rangeStream returns the joined parts of a stream.
func rangeStream(ctx context.Context, kv pb.KVClient, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	s, err := kv.RangeStream(ctx, r)
	if err != nil {
		return nil, err
	}
	for all := (&pb.RangeResponse{}); ; {
		part, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		proto.Merge(all, part.RangeResponse)
	}
}

func answerOf[Q any, A answer](p *player, request Q, call func(context.Context, Q, ...grpc.CallOption) (A, error)) string {
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	a, err := call(ctx, request)
	if err != nil {
		s := status.Convert(err)
		return fmt.Sprintf("error %s: %s", s.Code(), s.Message())
	}
	h := a.GetHeader()
	if h == nil {
		return "without a header: " + a.String()
	}
	p.head = max(p.head, h.Revision)
	h.ClusterId, h.MemberId, h.RaftTerm = 0, 0, 0
	level(a, p.member)
	if p.change != nil {
		p.change(a)
	}
	return a.String()
}

func (p *player) keepAlive(ctx context.Context, r *pb.LeaseKeepAliveRequest, _ ...grpc.CallOption) (*pb.LeaseKeepAliveResponse, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := p.lease.LeaseKeepAlive(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.Send(r); err != nil {
		return nil, err
	}
	return s.Recv()
}

// Compare returns the first difference of two records, "" if there is none, and the number of requests before
// it.
func Compare(want, got *Record) (after int, difference string) {
	for i := range want.Answers {
		if want.Answers[i] != got.Answers[i] || want.Sent[i] != got.Sent[i] {
			return i + 1, fmt.Sprintf("request %d: %s\nwant %s\ngot  %s", i, differing(want.Sent[i], got.Sent[i]), want.Answers[i], got.Answers[i])
		}
	}
	for _, watch := range sortedKeys(want.Watches, got.Watches) {
		if d := firstLine(want.Watches[watch], got.Watches[watch]); d != "" {
			return len(want.Answers), fmt.Sprintf("watch %s: %s", watch, d)
		}
	}
	if len(got.Faults) > 0 {
		return len(want.Answers), "faults: " + strings.Join(got.Faults, "\n")
	}
	return 0, ""
}

func differing(want, got string) string {
	if want == got {
		return want
	}
	return fmt.Sprintf("sent %s to one and %s to the other", want, got)
}

func firstLine(want, got []string) string {
	for i := range max(len(want), len(got)) {
		if w, g := at(want, i), at(got, i); w != g {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i, w, g)
		}
	}
	return ""
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "nothing"
}

// Shrink returns a part of steps for which differs still is true, as short as it finds until a moment.
func Shrink(steps []Step, until time.Time, differs func([]Step) bool) []Step {
	for size := (len(steps) + 1) / 2; size >= 1; size /= 2 {
		for from := 0; from < len(steps) && time.Now().Before(until); {
			less := append(append([]Step(nil), steps[:from]...), steps[min(from+size, len(steps)):]...)
			if differs(less) {
				steps = less
			} else {
				from += size
			}
		}
	}
	return steps
}

var errEnded = errors.New("the stream has ended")
