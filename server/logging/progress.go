package logging

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"
)

// blockedAfter is how long a record may take to be written (upstream: server/healthz).
const blockedAfter = 2 * time.Minute

// Progress notices that a log takes no more records: what reads a pipe has stopped, and soon every
// request waits for it.
type Progress struct {
	writing atomic.Int64 // records that are being written
	last    atomic.Int64 // Unix nanoseconds at which the last record was written or begun by itself
}

// Watch returns a handler that does what h does.
func (p *Progress) Watch(h slog.Handler) slog.Handler { return &watched{h, p} }

// Check returns an error if the log has been blocked for two minutes.
func (p *Progress) Check() error { return p.check(time.Now()) }

func (p *Progress) check(now time.Time) error {
	if p.writing.Load() > 0 && now.Sub(time.Unix(0, p.last.Load())) > blockedAfter {
		return errors.New("logging blocked")
	}
	return nil
}

type watched struct {
	slog.Handler
	p *Progress
}

// Handle implements slog.Handler.
func (w *watched) Handle(ctx context.Context, r slog.Record) error {
	if w.p.writing.Add(1) == 1 {
		w.p.last.Store(time.Now().UnixNano())
	}
	defer func() {
		w.p.last.Store(time.Now().UnixNano())
		w.p.writing.Add(-1)
	}()
	return w.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (w *watched) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &watched{w.Handler.WithAttrs(attrs), w.p}
}

// WithGroup implements slog.Handler.
func (w *watched) WithGroup(name string) slog.Handler {
	return &watched{w.Handler.WithGroup(name), w.p}
}
