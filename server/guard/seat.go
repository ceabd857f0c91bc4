package guard

import (
	"sync/atomic"
	"time"

	"github.com/plinth-io/plinth/server/fairness"
)

const (
	// readerPatience is how long, in all, a request with a seat may wait for its client. readerRate is how fast the
	// client must be otherwise, in bytes a second.
	readerPatience = 20 * time.Millisecond
	readerRate     = 8 << 20
	// buffered is how many bytes of an answer net/http buffers, so that writing them does not wait for the client.
	buffered = 4 << 10
)

// seat is the seat of a request whose client is bounded. A request that waits for its client gives it
// back, and goes on without: it then has a place in the room of slow answers.
type seat struct {
	guard *Guard
	call  *Call
	given fairness.Seat

	held   atomic.Bool
	looks  atomic.Bool // a timer looks after it: the answer is large, or waits
	waited atomic.Int64
	moved  atomic.Int64 // bytes that were written or asked for
	size   atomic.Int64 // bytes that wait in memory for the client

	timer *time.Timer // guarded by call.mu
}

// begin lets the call's reads and writes look after its seat.
func (s *seat) begin(g *Guard, x *Call, given fairness.Seat) {
	s.guard, s.call, s.given = g, x, given
	x.in.blocked.seat, x.out.blocked.seat = s, s
	s.held.Store(true)
}

// end is called when the seat is not needed any more, and once more when the request has ended.
func (s *seat) end() {
	s.held.Store(false)
	if !s.looks.Load() {
		return
	}
	s.call.mu.Lock()
	defer s.call.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	s.guard.answers.leave(&s.call.answer)
}

// waits is called before a read or a write that may wait for the client, with its size in bytes.
func (s *seat) waits(bytes int) {
	if !s.held.Load() {
		return
	}
	moved := s.moved.Add(int64(bytes))
	if int64(bytes) > s.size.Load() {
		s.size.Store(int64(bytes))
	}
	if moved <= buffered || s.looks.Swap(true) {
		return
	}
	s.call.mu.Lock()
	defer s.call.mu.Unlock()
	if s.held.Load() {
		s.timer = time.AfterFunc(readerPatience, s.look)
	}
}

// hasWaited is called after a read or a write.
func (s *seat) hasWaited(since int64) {
	if s.looks.Load() && s.held.Load() {
		s.waited.Add(time.Now().UnixNano() - since)
	}
}

// look gives the seat back if the client is slow.
func (s *seat) look() {
	x, now := s.call, time.Now()
	waited := time.Duration(s.waited.Load()) + x.in.blocked.since(now) + x.out.blocked.since(now)
	if waited >= readerPatience+time.Duration(s.moved.Load())*time.Second/readerRate {
		s.giveBack()
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if s.held.Load() {
		s.timer.Reset(readerPatience)
	}
}

func (s *seat) giveBack() {
	x := s.call
	x.mu.Lock()
	if !s.held.Swap(false) {
		x.mu.Unlock()
		return
	}
	s.given.Leave()
	x.answer.call = x
	ok, gone := s.guard.answers.take(&x.answer, x.User.GetName(), bound{1, s.size.Load()}, 0)
	x.mu.Unlock()
	if !ok {
		gone = append(gone, x)
	}
	for _, other := range gone {
		other.end()
	}
}

// end cuts a call off that has waited for its client.
func (x *Call) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return
	}
	now := time.Now().UnixMilli() - 1
	x.in.until.Store(now) // what is blocked all the same is for CutStalled
	x.out.until.Store(now)
	x.cutReading()
	x.cutOff()
}

// waitedForReader is for room.
func waitedForReader(x *Call, now time.Time) time.Duration {
	return max(x.out.blocked.since(now), x.in.blocked.since(now))
}
