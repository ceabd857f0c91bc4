package server

import (
	"errors"
	"sync"
)

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
