package logging

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	seldomMost  = 5 // records in an interval
	seldomEvery = time.Minute
)

// Seldom bounds how often a message is logged whose number clients decide about. The zero
// value is ready for use.
type Seldom struct {
	mu      sync.Mutex // guards the rest
	begun   time.Time  // of the interval
	told    int        // records in it
	dropped int        // records since one was written
}

// Log writes a record, unless five were written within the last minute. The next record
// says how many were left out.
func (d *Seldom) Log(logger *slog.Logger, level slog.Level, message string, attrs ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); now.Sub(d.begun) >= seldomEvery {
		d.begun, d.told = now, 0
	}
	if d.told == seldomMost {
		d.dropped++
		return
	}
	d.told++
	if d.dropped > 0 {
		attrs = append(attrs, "leftOut", d.dropped)
		d.dropped = 0
	}
	logger.Log(context.Background(), level, message, attrs...)
}
