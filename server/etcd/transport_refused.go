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

// refusedEvery is the shortest pause between two records about failed TLS handshakes.
const refusedEvery = 10 * time.Second

// refusals logs clients that fail in the TLS handshake, with a limit on the number of records.
type refusals struct {
	mu    sync.Mutex // guards the fields below
	next  time.Time  // when the next record may be logged
	since int        // unlogged failures since the last record
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

// isGone reports whether a client has only closed its connection or sent nothing, as port checks do, or
// whether this server stops.
func isGone(err error) bool {
	for _, gone := range []error{io.EOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE, os.ErrDeadlineExceeded} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return false
}
