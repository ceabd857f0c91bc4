package server

import (
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// running counts the requests in the server, those in process too. A sync.WaitGroup
// cannot be used: it must not be added to while somebody waits for it.
type running struct {
	count  atomic.Int64
	closed atomic.Bool
	once   sync.Once
	idle   chan struct{} // closed when closed is set and count has been 0 since
}

// enter counts a request in, unless close was called. One that is let in must leave.
func (n *running) enter() bool {
	n.count.Add(1)
	if !n.closed.Load() {
		return true
	}
	n.leave()
	return false
}

func (n *running) leave() {
	if n.count.Add(-1) == 0 && n.closed.Load() {
		n.once.Do(func() { close(n.idle) })
	}
}

// close lets no more requests in; idle is closed when the last has left.
func (n *running) close() {
	n.count.Add(1)
	n.closed.Store(true)
	n.leave()
}

// errStopping tells a client that is still connected to come back, to whoever listens
// then, in upstream's words (server/filters/waitgroup.go).
var errStopping = apierrors.NewServiceUnavailable("apiserver is shutting down")
