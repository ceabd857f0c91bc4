package sqlstore

import (
	"errors"
	"sync"
	"time"
)

// probeEvery is how often a Store asks a database that failed whether it works again.
const probeEvery = 500 * time.Millisecond

// health remembers how the last read and the last write of the database went.
type health struct {
	mu       sync.Mutex
	readErr  error
	writeErr error
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

// wrote notes the outcome of an Append. One that failed for its own sake says nothing
// about the database.
func (h *health) wrote(err error) {
	if err != nil && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrUnknown) {
		return
	}
	h.mu.Lock()
	h.writeErr = err
	h.mu.Unlock()
}

// probeIn returns when writes should be probed, 0 for never.
func (h *health) probeIn() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.writeErr == nil {
		return 0
	}
	return probeEvery
}
