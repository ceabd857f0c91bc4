package etcd

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// refusedEvery is how often clients that failed in the TLS handshake are logged.
const refusedEvery = 10 * time.Second

// refusals logs clients that failed in the TLS handshake, but not each of those that come again and
// again.
type refusals struct {
	mu    sync.Mutex // guards what follows
	next  time.Time  // before it nothing is logged
	since int        // refused since the last record, and not logged
}

func (r *refusals) note(logger *slog.Logger, client net.Addr, err error) {
	if isGone(err) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Before(r.next) {
		r.since++
		return
	}
	logger.Warn("a client has failed in the TLS handshake", "client", client, "err", err, "others", r.since)
	r.next, r.since = now.Add(refusedEvery), 0
}

// isGone tells whether a client has only closed its connection or said nothing, as checks of ports
// do, or this server stops.
func isGone(err error) bool {
	for _, gone := range []error{io.EOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE, os.ErrDeadlineExceeded} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return false
}
