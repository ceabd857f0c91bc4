package sqlstore

import (
	"errors"
	"sync"
	"time"
)

const (
	// probeEvery is how often a Store asks a database that failed whether it works again.
	probeEvery = 500 * time.Millisecond
	// doubtFor is how long a failed write is believed when the database answers probes
	// all the same: a full disk takes locks and no rows.
	doubtFor = 10 * time.Second
)

// health remembers how the last read and the last write of the database went.
type health struct {
	mu          sync.Mutex
	readErr     error
	writeErr    error
	writeAt     time.Time // when rows were refused with writeErr
	probeFailed bool      // since then
}

// Healthy returns nil, or why the database cannot be used now. Reads that do not ask
// for the most recent state go on from memory meanwhile.
func (s *Store) Healthy() error {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	if s.health.writeErr != nil {
		return s.health.writeErr
	}
	return s.health.readErr
}

func (h *health) read(err error) {
	h.mu.Lock()
	h.readErr = err
	h.mu.Unlock()
}

func (h *health) readFails() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.readErr != nil
}

// wrote notes the outcome of a batch. One that failed for its own sake says nothing
// about the database.
func (h *health) wrote(err error) {
	if err != nil && !isAway(err) {
		return
	}
	h.mu.Lock()
	h.writeErr, h.writeAt, h.probeFailed = err, time.Now(), false
	h.mu.Unlock()
}

// probed notes the outcome of a batch without rows.
func (h *health) probed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err != nil:
		h.writeErr, h.probeFailed = err, true
	case h.probeFailed || time.Since(h.writeAt) > doubtFor:
		h.writeErr = nil
	}
}

func isAway(err error) bool { return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUnknown) }

// probeIn returns when writes should be probed, 0 for never.
func (h *health) probeIn() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.writeErr == nil {
		return 0
	}
	return probeEvery
}
