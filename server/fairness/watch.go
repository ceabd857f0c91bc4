package fairness

import "sync"

// signal is how the handler of a watch tells that it has begun: the watch needs no seat any more.
type signal struct {
	once  sync.Once
	seat  Seat
	begun func() // may be nil
}

func newSignal(seat Seat, begun func()) *signal { return &signal{seat: seat, begun: begun} }

// Signal tells that the watch has begun, or ended; only the first call counts.
func (s *signal) Signal() {
	s.once.Do(func() {
		s.seat.Leave()
		if s.begun != nil {
			s.begun()
		}
	})
}

// Wait is not called: nobody waits for a watch to begin but through its seat.
func (s *signal) Wait() {}
