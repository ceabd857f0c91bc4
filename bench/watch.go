package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/plinth-io/plinth/bench/apiload"
	"github.com/plinth-io/plinth/bench/figures"
)

// writesPerSecond is the pace of changes while watches are measured.
const writesPerSecond = 100

// watchGrace is the time after the last write until an event that has not come counts as lost.
const watchGrace = 10 * time.Second

// watcher is one client with one watch. Its fields belong to its goroutine until the goroutine has
// ended.
type watcher struct {
	seen    []bool // by number of the write
	events  int
	again   int // events that came twice or out of order
	last    int64
	samples []time.Duration
	done    chan struct{} // closed when all have come
}

// measureWatch writes at a steady pace. At each watcher it measures the time from sending a write
// to receiving its event.
func (g *rig) measureWatch(ctx context.Context) error {
	writes := int(g.scale.watch.Seconds() * writesPerSecond)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	clients, err := g.plinth.dialMany(ctx, g.scale.watchers, "/readyz")
	if err != nil {
		return err
	}
	defer apiload.Close(clients)
	var newest bytes.Buffer
	if _, err := g.toPlinth[0].Do(ctx, http.MethodGet, echoPath+"?limit=1", nil, &newest); err != nil {
		return err
	}
	path := fmt.Sprintf("%s?watch=1&resourceVersion=%d", echoPath, apiload.IntField(newest.Bytes(), "resourceVersion"))
	watchers := make([]*watcher, g.scale.watchers)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	for i, c := range clients {
		w := &watcher{seen: make([]bool, writes), done: make(chan struct{})}
		watchers[i] = w
		response, err := c.Send(ctx, http.MethodGet, path, nil)
		if err != nil {
			return err
		}
		wg.Go(func() {
			defer response.Body.Close()
			if err := w.read(response.Body); err != nil {
				cancel(fmt.Errorf("watch: %w", err))
			}
		})
	}
	cpu, err := g.writeAtPace(ctx, writes)
	if err != nil {
		return err
	}
	waitForAll(ctx, watchers)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	cancel(nil)
	wg.Wait()
	g.reportWatch(watchers, writes, cpu)
	return nil
}

// waitForAll waits until all watchers have all events, at most for watchGrace.
func waitForAll(ctx context.Context, watchers []*watcher) {
	grace := time.After(watchGrace)
	for _, w := range watchers {
		select {
		case <-w.done:
		case <-grace:
			return
		case <-ctx.Done():
			return
		}
	}
}

// writeAtPace starts each write at its time, even if earlier writes have not ended.
func (g *rig) writeAtPace(ctx context.Context, writes int) (cpu time.Duration, err error) {
	before, err := g.plinth.cpu()
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	tick := time.NewTicker(time.Second / writesPerSecond)
	defer tick.Stop()
	for n := range writes {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
		wg.Go(func() {
			body := apiload.ConfigMap(fmt.Sprintf("cm-%05d", n%100), n, 0)
			apiload.SetField(body, "sent", fmt.Sprintf("%020d", time.Now().UnixNano()))
			path := fmt.Sprintf("%s/cm-%05d", echoPath, n%100)
			if _, err := g.toPlinth[n%connections].Do(ctx, http.MethodPut, path, body, nil); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	after, err := g.plinth.cpu()
	return after - before, err
}

// read receives events until the connection ends.
func (w *watcher) read(stream io.Reader) error {
	lines := bufio.NewReaderSize(stream, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		arrived := time.Now()
		if errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("event of more than %d bytes", len(line))
		}
		if err != nil {
			return nil // the caller finds out whether events are missing
		}
		if bytes.HasPrefix(line, []byte(`{"type":"ERROR"`)) {
			return fmt.Errorf("%s", line)
		}
		w.take(line, arrived)
	}
}

func (w *watcher) take(line []byte, arrived time.Time) {
	sent, n := apiload.IntField(line, "sent"), apiload.IntField(line, "n")
	if sent == 0 || n >= int64(len(w.seen)) {
		return // an event of another object
	}
	revision := apiload.IntField(line, "resourceVersion")
	if w.seen[n] || revision <= w.last {
		w.again++
		return
	}
	w.seen[n], w.last = true, revision
	w.samples = append(w.samples, arrived.Sub(time.Unix(0, sent)))
	if w.events++; w.events == len(w.seen) {
		close(w.done)
	}
}

func (g *rig) reportWatch(watchers []*watcher, writes int, cpu time.Duration) {
	var samples []time.Duration
	lost := 0
	for _, w := range watchers {
		samples = append(samples, w.samples...)
		lost += writes - w.events + w.again
	}
	pace := fmt.Sprintf("%d watchers, %d writes/s", len(watchers), writesPerSecond)
	l := figures.LatencyOf(samples)
	if l == nil {
		l = &figures.Latency{}
	}
	g.d.add(Figure{What: "watch, " + pace + ": p99 delay", Value: l.P99, Unit: "ms", Latency: l, Target: figures.AtMost(50)})
	g.d.add(Figure{What: "watch: events lost or repeated", Value: float64(lost), Unit: "events", Target: figures.AtMost(0),
		Note: fmt.Sprintf("of %s", figures.Number(float64(writes*len(watchers))))})
	g.d.add(Figure{What: "watch: server CPU", Value: float64(cpu.Microseconds()) / float64(writes*len(watchers)), Unit: "µs/event"})
}
