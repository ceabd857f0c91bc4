package sqlstore

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

const (
	// probeEvery is how often a Store asks a database that failed whether it works again.
	probeEvery = 500 * time.Millisecond
	// doubtFor is how long writes count as failing after a failed write although the database
	// answers probes: on a full disk the lock can be taken, but no row can be written.
	doubtFor = 10 * time.Second
	// damagedFor is how long a database that has answered that it is damaged is told of, after its last such answer.
	damagedFor = 10 * time.Minute
)

// health remembers how the last read and the last write of the database went.
type health struct {
	*shared

	mu          sync.Mutex
	readErr     error
	writeErr    error
	writeAt     time.Time // when rows were refused with writeErr
	probeFailed bool      // after writeAt
	damagedAt   time.Time // when the database answered last that it is damaged

	outage outage
}

// report logs what has changed. The caller holds mu.
func (h *health) report() {
	if h.ctx.Err() != nil { // the Store is closing, and errors mean nothing any more
		return
	}
	err := h.writeErr
	if err == nil {
		err = h.readErr
	}
	h.outage.note(h.log.Condition(), err)
}

// run logs what the log itself finds wrong, also while the Store is idle.
func (h *health) run() {
	tick := time.NewTicker(conditionEvery)
	defer tick.Stop()
	for {
		h.look()
		select {
		case <-tick.C:
		case <-h.stop:
			return
		}
	}
}

func (h *health) look() {
	h.mu.Lock()
	h.report()
	h.mu.Unlock()
}

func (h *health) healthy() error {
	if err := h.log.Condition(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.writeErr != nil {
		return h.writeErr
	}
	return h.readErr
}

// hear notes that the database itself says that it is damaged. The caller holds mu.
func (h *health) hear(err error) {
	if !errors.Is(err, changelog.ErrDamaged) {
		return
	}
	if time.Since(h.damagedAt) > damagedFor {
		h.outage.log.Error("the database answers that it is damaged: plinth verify finds out where", "err", err)
	}
	h.damagedAt = time.Now()
}

// saysDamaged tells whether the database has answered of late that it is damaged.
func (h *health) saysDamaged() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Since(h.damagedAt) <= damagedFor
}

func (h *health) read(err error) {
	h.mu.Lock()
	h.hear(err)
	h.readErr = err
	h.report()
	h.mu.Unlock()
}

func (h *health) readFails() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.readErr != nil
}

// wrote notes the outcome of a batch. A batch that failed because of its content says
// nothing about the database.
func (h *health) wrote(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hear(err)
	if err != nil && !isAway(err) {
		return
	}
	h.writeErr, h.writeAt, h.probeFailed = err, time.Now(), false
	h.report()
}

// probed notes the outcome of a batch without rows.
func (h *health) probed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.report()
	h.hear(err)
	switch {
	case err != nil:
		h.writeErr, h.probeFailed = err, true
	case h.probeFailed || time.Since(h.writeAt) > doubtFor:
		h.writeErr = nil
	}
}

func isAway(err error) bool {
	return errors.Is(err, changelog.ErrUnavailable) || errors.Is(err, changelog.ErrUnknown)
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

func (h *health) outages() []Outage {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.report()
	return slices.Clone(h.outage.past)
}
