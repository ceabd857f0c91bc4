package etcdtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// stream is a watch stream of a player, and what it has received.
type stream struct {
	client pb.Watch_WatchClient
	cancel context.CancelFunc

	mu         sync.Mutex
	changed    chan struct{}      // closed at the next change, and replaced
	created    []string           // answers to creations, in order
	lines      map[int64][]string // by watch
	open       map[int64]int64    // watches by id, and their start
	fragments  map[int64]bool     // watches that asked for them
	compacted  map[int64]bool     // watches that the server has canceled without a request of the client
	last       map[int64]int64    // revision of the last event, by watch
	progressOf map[int64]int64    // revision of the last progress, by watch
	progress   int64              // and of all
	next       int64              // revision that progress must reach after the last creation
	asked      []*pb.WatchCreateRequest
	faults     []string
	err        error
}

func openStream(ctx context.Context, c pb.WatchClient) (*stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	w, err := c.Watch(ctx)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("open a stream: %w", err)
	}
	s := &stream{
		client: w, cancel: cancel, changed: make(chan struct{}), lines: map[int64][]string{}, open: map[int64]int64{},
		fragments: map[int64]bool{}, compacted: map[int64]bool{}, last: map[int64]int64{}, progressOf: map[int64]int64{},
	}
	go s.receive()
	return s, nil
}

func (s *stream) receive() {
	for {
		r, err := s.client.Recv()
		s.mu.Lock()
		if err != nil {
			s.err = err
		} else {
			s.take(r)
		}
		close(s.changed)
		s.changed = make(chan struct{})
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// forAll is the id of a watch in the answer to a request for progress.
const forAll = -1

// take records one answer. s.mu must be held.
func (s *stream) take(r *pb.WatchResponse) {
	id := r.WatchId
	switch {
	case r.Created:
		asked := s.asked[0]
		s.asked = s.asked[1:]
		s.created = append(s.created, fmt.Sprintf("created %d at %d, canceled %t %q", id, r.Header.GetRevision(), r.Canceled, r.CancelReason))
		if !r.Canceled {
			s.open[id], s.fragments[id], s.last[id], s.progressOf[id] = asked.StartRevision, asked.Fragment, 0, 0
			s.lines[id] = append(s.lines[id], "created")
		}
	case r.Canceled:
		s.lines[id] = append(s.lines[id], fmt.Sprintf("canceled %q, compacted %d", r.CancelReason, r.CompactRevision))
		delete(s.open, id)
		if r.CompactRevision != 0 {
			s.compacted[id] = true
		} else {
			delete(s.compacted, id)
		}
	case len(r.Events) == 0:
		if id == forAll { // progress of one watch says nothing about the others
			s.progress = max(s.progress, r.Header.GetRevision())
		}
		for watch := range s.open {
			if id == watch || id == forAll {
				s.progressOf[watch] = max(s.progressOf[watch], r.Header.GetRevision())
			}
		}
	default:
		s.takeEvents(r)
	}
}

func (s *stream) takeEvents(r *pb.WatchResponse) {
	id := r.WatchId
	if _, open := s.open[id]; !open {
		s.fault("events for watch %d, which is not open: %s", id, r)
	}
	for i, e := range r.Events {
		revision := e.Kv.ModRevision
		divided := i == 0 && revision == s.last[id] && !s.fragments[id]
		if revision < s.last[id] || divided {
			s.fault("watch %d: revision %d after %d", id, revision, s.last[id])
		}
		if revision <= s.progressOf[id] {
			s.fault("watch %d: revision %d after progress at %d", id, revision, s.progressOf[id])
		}
		if revision > r.Header.GetRevision() {
			s.fault("watch %d: revision %d in an answer at %d", id, revision, r.Header.GetRevision())
		}
		s.last[id] = revision
		s.lines[id] = append(s.lines[id], fmt.Sprintf("%d %s", revision, e))
	}
}

func (s *stream) fault(format string, args ...any) {
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

// await waits until done returns true, and otherwise returns an error. done is called with s.mu held.
func (s *stream) await(ctx context.Context, most time.Duration, done func() bool) error {
	timeout := time.NewTimer(most)
	defer timeout.Stop()
	for {
		s.mu.Lock()
		ok, err, changed := done(), s.err, s.changed
		s.mu.Unlock()
		switch {
		case ok:
			return nil
		case err != nil:
			return fmt.Errorf("%w: %w", errEnded, err)
		}
		select {
		case <-changed:
		case <-timeout.C:
			return context.DeadlineExceeded
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// answerPatience is for an answer that is sure to come.
const answerPatience = time.Minute

// sendWatch sends a request on a stream and waits for the answer, if there will be one.
func (p *player) sendWatch(i int, r *pb.WatchRequest) string {
	s := p.streams[i]
	if c := r.GetCreateRequest(); c != nil {
		s.mu.Lock()
		n := len(s.created)
		s.asked = append(s.asked, c)
		s.mu.Unlock()
		if err := s.client.Send(r); err != nil {
			return "send: " + err.Error()
		}
		if err := s.await(p.ctx, answerPatience, func() bool { return len(s.created) > n }); err != nil {
			return "not created: " + err.Error()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		// The other watches may have received progress up to the newest revision before.
		if c.StartRevision > 0 && c.StartRevision <= p.head {
			s.next = p.head + 1
		}
		return s.created[n]
	}
	if c := r.GetCancelRequest(); c != nil {
		p.settle(i)
		return p.cancel(s, c.WatchId)
	}
	if err := s.client.Send(r); err != nil {
		return "send: " + err.Error()
	}
	return "sent"
}

// cancel cancels a watch and waits for the answer, which comes if the watch exists.
func (p *player) cancel(s *stream, id int64) string {
	s.mu.Lock()
	_, open := s.open[id]
	open = open || s.compacted[id]
	lines := len(s.lines[id])
	s.mu.Unlock()
	r := &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: &pb.WatchCancelRequest{WatchId: id}}}
	if err := s.client.Send(r); err != nil {
		return "send: " + err.Error()
	}
	if !open {
		return "sent" // etcd does not answer
	}
	if err := s.await(p.ctx, answerPatience, func() bool { return len(s.lines[id]) > lines }); err != nil {
		return "not canceled: " + err.Error()
	}
	return "canceled"
}

// settleAll settles all streams. Settling one may make revisions that the others wait for.
func (p *player) settleAll() {
	for head := int64(-1); head != p.head; {
		head = p.head
		for i := range p.streams {
			p.settle(i)
		}
	}
}

// settle waits until all watches of a stream have received everything. etcd reports that on a progress
// request, unless a watch starts in the future or was canceled by compaction.
func (p *player) settle(i int) {
	s := p.streams[i]
	for {
		s.mu.Lock()
		future := s.next
		for _, start := range s.open {
			future = max(future, start)
		}
		n, progress := len(s.open)+len(s.compacted), s.progress
		dead := slices.Sorted(maps.Keys(s.compacted))
		s.mu.Unlock()
		if n == 0 || progress >= p.head && future <= p.head && len(dead) == 0 {
			return
		}
		p.putUntil(future)
		for _, id := range dead {
			if said := p.cancel(s, id); said != "canceled" {
				p.record.Faults = append(p.record.Faults, fmt.Sprintf("watch %d/%d was compacted and then %s", i, id, said))
				s.forget(id)
			}
		}
		if len(dead) == 0 && !p.progressed(s) {
			p.record.Faults = append(p.record.Faults, fmt.Sprintf("stream %d makes no progress to %d from %d", i, p.head, progress))
			return
		}
	}
}

// progressed requests progress until it has come, or a watch has been canceled.
func (p *player) progressed(s *stream) bool {
	ask := &pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}}
	for end := time.Now().Add(answerPatience); time.Now().Before(end); {
		if s.client.Send(ask) != nil {
			return false
		}
		err := s.await(p.ctx, 20*time.Millisecond, func() bool { return s.progress >= p.head || len(s.compacted) > 0 || len(s.open) == 0 })
		if err == nil {
			return true
		}
		if p.ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return false
		}
	}
	return false
}

// putUntil writes until the head is at least at revision.
func (p *player) putUntil(revision int64) {
	for p.head < revision {
		before := p.head
		p.send(Step{Request: &pb.PutRequest{Key: []byte("b")}})
		if p.head == before { // the space is full
			p.send(Step{Request: &pb.AlarmRequest{MemberID: p.member, Action: pb.AlarmRequest_DEACTIVATE, Alarm: pb.AlarmType_NOSPACE}})
		}
		if p.ctx.Err() != nil {
			return
		}
	}
}

func (s *stream) forget(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.compacted, id)
}

// into adds what was received to r.
func (s *stream) into(r *Record, i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, lines := range s.lines {
		r.Watches[fmt.Sprintf("%d/%d", i, id)] = slices.Clone(lines)
	}
	for _, f := range s.faults {
		r.Faults = append(r.Faults, fmt.Sprintf("stream %d: %s", i, f))
	}
	s.cancel()
}
