package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plinth-io/plinth/bench/apiload"
	"github.com/plinth-io/plinth/bench/figures"
)

// fanRate is how many objects are changed in a second while many watches see each change.
const fanRate = 50

// fanGrace is the time after the last change until an event that has not come counts as lost.
const fanGrace = 10 * time.Second

// measureFanOut compares the CPU time for each event, with many watches on few connections, with that of
// a handler that writes bytes of the same size. Each has the changes as well.
func (g *rig) measureFanOut(ctx context.Context) error {
	var object bytes.Buffer
	if _, err := g.toPlinth[0].Do(ctx, http.MethodGet, echoPath+"/cm-00000", nil, &object); err != nil {
		return err
	}
	event := fmt.Appendf(nil, "{\"type\":\"MODIFIED\",\"object\":%s}\n", bytes.TrimSpace(object.Bytes()))
	if _, err := g.echo.do(order{Do: doAnswer, Body: event}); err != nil {
		return err
	}
	var s sides
	for range g.scale.fanRounds {
		for _, side := range []struct {
			of      *side
			at      *process
			clients apiload.Clients
		}{{&s.plinth, g.plinth, g.toPlinth}, {&s.other, g.echo, g.toEcho}} {
			cpu, err := g.fanOut(ctx, side.at, side.clients)
			if err != nil {
				return err
			}
			side.of.cpus.Add(cpu)
		}
	}
	f := s.cpu(fmt.Sprintf("watch, %s watches, %d writes/s: server CPU", figures.Number(float64(g.scale.fanWatches)), fanRate))
	f.Unit, f.Target = "µs/event", figures.AtMost(1.1)
	g.d.add(f)
	return nil
}

// fanOut returns the microseconds of CPU time for each event.
func (g *rig) fanOut(ctx context.Context, p *process, clients apiload.Clients) (float64, error) {
	writes := int(g.scale.fanFor.Seconds() * fanRate)
	all := eventCount{want: int64(writes * g.scale.fanWatches), done: make(chan struct{})}
	watches, err := clients.WatchFrom(ctx, g.scale.fanWatches, echoPath, func(_ int, stream io.Reader) { _, _ = io.Copy(&all, stream) })
	if err != nil {
		return 0, err
	}
	defer watches.End()
	before, err := p.cpu()
	if err != nil {
		return 0, err
	}
	if err := changeAtPace(ctx, clients, writes); err != nil {
		return 0, err
	}
	select {
	case <-all.done:
	case <-time.After(fanGrace):
		return 0, fmt.Errorf("%d of %d events have come", all.got.Load(), all.want)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	after, err := p.cpu()
	return float64(after-before) / float64(time.Microsecond) / float64(all.want), err
}

// changeAtPace changes an object again and again, each time at its time.
func changeAtPace(ctx context.Context, clients apiload.Clients, writes int) error {
	tick := time.NewTicker(time.Second / fanRate)
	defer tick.Stop()
	for n := range writes {
		body := apiload.Stamp(apiload.ConfigMap("cm-00000", n, 0)) // no two are alike
		if _, err := clients.Of(n).Do(ctx, http.MethodPut, echoPath+"/cm-00000", body, nil); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// eventCount counts events that many watches write to it.
type eventCount struct {
	want int64
	got  atomic.Int64
	done chan struct{} // closed when as many have come as are wanted
}

// Write implements io.Writer.
func (c *eventCount) Write(b []byte) (int, error) {
	n := int64(bytes.Count(b, []byte{'\n'}))
	if now := c.got.Add(n); n > 0 && now >= c.want && now-n < c.want {
		close(c.done)
	}
	return len(b), nil
}

// fan is what the handler's watches wait for.
type fan struct {
	watches atomic.Int64 // without any, nothing is kept
	mu      sync.Mutex
	next    *happening
}

// happening is one event and what comes after it, which are set before c is closed.
type happening struct {
	c     chan struct{}
	event []byte
	next  *happening
}

func newFan() *fan { return &fan{next: &happening{c: make(chan struct{})}} }

// last returns what comes next.
func (f *fan) last() *happening {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next
}

// put has bytes as the next event.
func (f *fan) put(event []byte) {
	if f.watches.Load() == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.next
	h.event, h.next = event, &happening{c: make(chan struct{})}
	f.next = h.next
	close(h.c)
}

// serve writes what happens until the client leaves.
func (f *fan) serve(w http.ResponseWriter, r *http.Request) error {
	f.watches.Add(1)
	defer f.watches.Add(-1)
	w.Header().Set("Content-Type", "application/json")
	flush := http.NewResponseController(w).Flush
	for h := f.last(); ; h = h.next {
		if err := flush(); err != nil {
			return err
		}
		select {
		case <-h.c:
		case <-r.Context().Done():
			return nil
		}
		if _, err := w.Write(h.event); err != nil {
			return err
		}
	}
}
