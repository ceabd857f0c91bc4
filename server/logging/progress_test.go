package logging

import (
	"log/slog"
	"testing"
	"time"
)

// stuck is a writer that takes nothing until it is released.
type stuck struct{ entered, release chan struct{} }

func (s *stuck) Write(p []byte) (int, error) {
	s.entered <- struct{}{}
	<-s.release
	return len(p), nil
}

func TestProgress(t *testing.T) {
	w := &stuck{make(chan struct{}), make(chan struct{})}
	var p Progress
	logger := slog.New(p.Watch(slog.NewTextHandler(w, nil))).With("a", 1).WithGroup("g")
	later := time.Now().Add(3 * time.Minute)
	if err := p.check(later); err != nil {
		t.Errorf("nothing was ever logged: %v", err)
	}
	done := make(chan struct{})
	go func() { logger.Info("one"); close(done) }()
	<-w.entered
	if err := p.Check(); err != nil {
		t.Errorf("at once: %v", err)
	}
	if err := p.check(later); err == nil || err.Error() != "logging blocked" {
		t.Errorf("blocked for three minutes: %v", err)
	}
	close(w.release)
	<-done
	if err := p.check(later); err != nil {
		t.Errorf("after that: %v", err)
	}
	logger.Debug("a record that is not enabled does not count")
	if p.writing.Load() != 0 {
		t.Errorf("%d records are being written", p.writing.Load())
	}
}
