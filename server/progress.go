package server

import (
	"log/slog"
	"sync"
	"time"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server/kind"
)

// tellEvery is how often a start that takes long says what it does.
const tellEvery = 10 * time.Second

// progress is how far a start has come, for the log.
type progress struct {
	logger *slog.Logger
	begun  time.Time

	mu    sync.Mutex // guards the rest
	step  string
	err   error // of a database that is waited for
	until time.Time
}

// beginStart logs that the server starts, and every so often what it is at, until end is
// called.
func beginStart(c *Config, every time.Duration) (p *progress, end func()) {
	p = &progress{logger: c.Log, begun: time.Now(), step: "begin"}
	facts := []any{"version", Release(), "kubernetes", KubernetesVersion, "database", dialects.Describe(c.DSN), "dataDir", absolute(c.DataDir)}
	if kind.Emulates() {
		facts = append(facts, "emulates", kind.Emulated())
	}
	c.Log.Info("starting", facts...)
	done := make(chan struct{})
	var repeating sync.WaitGroup
	repeating.Go(func() { p.repeat(done, every) })
	return p, func() { close(done); repeating.Wait() }
}

// at says what the start does now.
func (p *progress) at(step string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step, p.err = step, nil
}

// waits says that the database cannot be reached yet because of err.
func (p *progress) waits(err error, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := p.err == nil
	p.err, p.until = err, until
	if first {
		p.tell()
	}
}

func (p *progress) repeat(done <-chan struct{}, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			p.mu.Lock()
			p.tell()
			p.mu.Unlock()
		}
	}
}

// tell is called with mu held.
func (p *progress) tell() {
	if p.err != nil {
		p.logger.Warn("waiting for the database", "err", p.err, "remaining", max(0, time.Until(p.until)))
		return
	}
	p.logger.Info("still starting", "step", p.step, "since", time.Since(p.begun))
}
