package bench

import (
	"context"
	"fmt"
	"net/http"

	"github.com/plinth-io/plinth/bench/apiload"
	"github.com/plinth-io/plinth/bench/figures"
)

// writesPerSecond is the pace of changes while watches are measured.
const writesPerSecond = 100

// measureWatch writes at a steady pace. At each watch, which has a connection of its own, it measures the time from
// sending a write to receiving its event.
func (g *rig) measureWatch(ctx context.Context) error {
	clients, err := apiload.Dial(ctx, g.plinth.config(), g.scale.watchers, "/readyz")
	if err != nil {
		return err
	}
	defer clients.Close()
	a, err := clients.Seat(ctx, len(clients), 1, func(uint8) string { return echoPath })
	if err != nil {
		return err
	}
	defer a.End()
	before, err := g.plinth.cpu()
	if err != nil {
		return err
	}
	v, err := a.Measure(ctx, int(g.scale.watch.Seconds()*writesPerSecond), writesPerSecond, func(ctx context.Context, n int) error {
		path, body := fmt.Sprintf("%s/cm-%05d", echoPath, n%100), apiload.Stamp(apiload.ConfigMap(fmt.Sprintf("cm-%05d", n%100), n, 0))
		_, err := g.toPlinth.Of(n).Do(ctx, http.MethodPut, path, body, nil)
		return err
	})
	if err != nil {
		return err
	}
	after, err := g.plinth.cpu()
	pace := fmt.Sprintf("%d watchers, %d writes/s", len(clients), writesPerSecond)
	delay, faults := v.Delay(), v.Faults(error.Error)
	g.d.add(Figure{What: "watch, " + pace + ": p99 delay", Value: delay.Value, Unit: "ms", Latency: figures.LatencyOf(delay.Samples), Target: figures.AtMost(50)})
	g.d.add(Figure{What: "watch: events lost or repeated", Value: faults.Value, Unit: "events", Target: figures.AtMost(0), Note: faults.Note})
	g.d.add(Figure{What: "watch: server CPU", Value: float64((after - before).Microseconds()) / float64(max(v.Expected, 1)), Unit: "µs/event"})
	return err
}
