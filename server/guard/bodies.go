package guard

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/plinth-io/plinth/server/response"
)

// A body is read before its request asks for a seat, so that a client that sends slowly holds no seat. The memory of
// bodies that are being read, or whose requests wait for a seat, is bounded; see room.

const (
	// firstBytes of a body are read before memory for the rest of it is taken.
	firstBytes = 64 << 10
	// bodyPatience is how long a body may pause while other bodies of the same user wait for room.
	bodyPatience = time.Second
	// longestWait is how long a body waits for room, or a quarter of its request's time: as long as
	// a request waits for a seat.
	longestWait = time.Minute
)

// errGone ends a request that had to make room for others.
var errGone = errors.New("the request had to make room for others")

// waitsForBody tells whether a request's body is read before it asks for a seat. Exempt are reads, whose bodies are
// ignored; the server's own requests, whose bodies are in memory; and users who need no seat.
func (g *Guard) waitsForBody(x *Call, l *limit) bool {
	return l == &g.inflight.writes && x.in.ReadCloser != nil && bounds(x)
}

// bounds tells whether a call's client may be slow and is bounded.
func bounds(x *Call) bool {
	return x.conn != nil && !slices.Contains(x.User.GetGroups(), user.SystemPrivilegedGroup)
}

// readBody reads the body of a request, once there is room for it. The request ends here, without a seat, if the body
// breaks off, takes longer than the request may, or has to make room for others.
func (g *Guard) readBody(x *Call) error {
	r := x.Request()
	most := r.ContentLength
	if most > g.o.Limits.Body {
		return nil // the handler refuses it
	}
	if most < 0 {
		most = g.o.Limits.Body + 1
	}
	if err := g.makeRoom(x, most); err != nil {
		return err
	}
	data, err := readAtMost(&x.in, most, r.ContentLength >= 0)
	if err != nil {
		return g.brokenOff(x, err)
	}
	g.bodies.shrink(&x.body, bound{bytes: int64(len(data))})
	b := &bufferedBody{data: data, Closer: &x.in}
	if r.ContentLength < 0 && int64(len(data)) == most {
		b.rest = &x.in
	}
	r.Body = b
	return nil
}

// brokenOff returns why the body of a request could not be read.
func (g *Guard) brokenOff(x *Call, err error) error {
	if !g.bodies.leave(&x.body) {
		return errGone
	}
	if late := x.Request().Context().Err(); errors.Is(late, context.DeadlineExceeded) {
		return late
	}
	return response.BodyError(err)
}

// makeRoom waits until there is room for a body.
func (g *Guard) makeRoom(x *Call, size int64) error {
	who, full := x.User.GetName(), bound{1, size}
	x.body.call = x
	if g.tookRoom(x, who, full) {
		return nil
	}
	ctx, cancel := shortWait(x.Request().Context())
	defer cancel()
	for {
		freed := g.bodies.await(who)
		if freed == nil {
			return errGone
		}
		took := g.tookRoom(x, who, full)
		if !took {
			select {
			case <-freed:
			case <-time.After(bodyPatience): // then another body may have paused for too long
			case <-ctx.Done():
			}
		}
		g.bodies.stopWaiting(who)
		switch {
		case took:
			return nil
		case ctx.Err() != nil:
			return errGone
		}
	}
}

func (g *Guard) tookRoom(x *Call, who string, size bound) bool {
	ok, gone := g.bodies.take(&x.body, who, size, bodyPatience)
	for _, other := range gone {
		other.stopReading()
	}
	return ok
}

// shortWait bounds a wait to a quarter of a request's time.
func shortWait(ctx context.Context) (context.Context, context.CancelFunc) {
	wait := longestWait
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)/4)
	}
	return context.WithTimeout(ctx, wait)
}

// stopReading ends a call whose body has lost its place: while it reads, or while it waits for a seat.
func (x *Call) stopReading() {
	x.mu.Lock() // the writer must not be touched once its request is over
	defer x.mu.Unlock()
	if x.over {
		return
	}
	x.cancel()
	x.cutReading()
}

// waitedForBody is for room.
func waitedForBody(x *Call, now time.Time) time.Duration { return x.in.blocked.since(now) }

// readAtMost reads a body of at most so many bytes, or of exactly so many. Memory is taken as bytes come.
func readAtMost(r io.Reader, most int64, exact bool) ([]byte, error) {
	data := make([]byte, min(most, firstBytes))
	n, err := io.ReadFull(r, data)
	for err == nil && int64(n) < most {
		size := most
		if !exact {
			size = min(most, 2*int64(len(data)))
		}
		more := make([]byte, size)
		copy(more, data)
		data = more
		var m int
		m, err = io.ReadFull(r, data[n:])
		n += m
	}
	if !exact && (err == io.EOF || err == io.ErrUnexpectedEOF) {
		err = nil
	}
	return data[:n], err
}

// bufferedBody is a body that has been read, or the beginning of one that is too long.
type bufferedBody struct {
	data []byte
	rest io.Reader // of a body that is longer than it may be; nil: there is nothing more
	io.Closer
}

// Read implements io.Reader.
func (b *bufferedBody) Read(p []byte) (int, error) {
	switch {
	case len(b.data) > 0:
		n := copy(p, b.data)
		b.data = b.data[n:]
		return n, nil
	case b.rest != nil:
		return b.rest.Read(p)
	}
	return 0, io.EOF
}

// Whole returns the body if all of it is there, and nobody has read it.
func (b *bufferedBody) Whole() ([]byte, bool) {
	if b.rest != nil {
		return nil, false
	}
	data := b.data
	b.data = nil
	return data, true
}
