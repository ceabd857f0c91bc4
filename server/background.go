package server

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/turns"
)

// background is the work beside requests that uses the API itself. It ends before requests do.
type background struct {
	logger *slog.Logger
	parts  parts

	jobs     sync.WaitGroup
	jobsCtx  context.Context // of all jobs
	stopJobs context.CancelFunc
}

// goPart runs a part that a health check is about.
func (b *background) goPart(name part, run func(context.Context)) {
	b.parts.set(name, works)
	b.jobs.Go(func() {
		defer b.parts.set(name, ended)
		run(b.jobsCtx)
	})
}

// goTurn does some work whenever it is this server's turn; never if the interval is 0.
func (b *background) goTurn(client *clientrest.Config, turn *turns.Turn, work func(context.Context) error) {
	if turn.Every == 0 {
		return
	}
	turn.Identity, turn.Client, turn.Logger = newIdentity(), client, b.logger
	b.jobs.Go(func() {
		if err := turn.Run(b.jobsCtx, work); err != nil {
			b.logger.Error("some work is not done at intervals", "lease", turn.Name, "err", err)
		}
	})
}

// end stops the work and waits until it has ended, but lets none hold up the stop for ever: what
// is left has its requests cut off with everybody else's.
func (b *background) end(ctx context.Context) {
	b.stopJobs()
	ended := make(chan struct{})
	go func() { b.jobs.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		b.logger.Warn("background work did not end in time")
	}
}

// part is a part of the server that a health check is about.
type part string

const (
	statePart       part = "state"                // the objects of the database are in memory
	admissionPart   part = "admission"            // plugins can be asked
	definitionsRead part = "definitions"          // custom resources are served
	extensionsRead  part = "extensions"           // extension servers are known
	bootstrapPart   part = "bootstrap"            // what every cluster begins with is there
	rolesPart       part = "roles"                // upstream's roles and bindings are there
	clusterJob      part = "cluster job"          // keeps it there
	definitionsJob  part = "definitions job"      // follows CustomResourceDefinitions
	extensionsJob   part = "extensions job"       // follows APIServices and asks extension servers
	fairnessJob     part = "fairness job"         // shares the server among its clients
	certificatesJob part = "certificates renewal" // renews certificates
)

// parts knows which parts of the server work.
type parts struct {
	mu     sync.Mutex
	states map[part]partState // guarded by mu
}

type partState int

const (
	notFinished partState = iota
	works
	ended
)

func (p *parts) set(name part, to partState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.states == nil {
		p.states = map[part]partState{}
	}
	p.states[name] = to
}

func (p *parts) state(name part) partState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.states[name]
}

var (
	errNotFinished = errors.New("not finished")
	errEnded       = errors.New("has ended")
)

// ready is an error unless the part works.
func (p *parts) ready(name part) error {
	switch p.state(name) {
	case works:
		return nil
	case ended:
		return errEnded
	}
	return errNotFinished
}

// alive is an error if the part worked and does no longer, which a restart may mend.
func (p *parts) alive(name part) error {
	if p.state(name) == ended {
		return errEnded
	}
	return nil
}
