package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// measureBurst measures resident memory some time after many watches have received many changes
// and ended.
func (g *rig) measureBurst(ctx context.Context) error {
	if err := g.burst(ctx); err != nil {
		return err
	}
	during, err := g.plinth.do(order{Do: doUsage})
	if err != nil {
		return err
	}
	if err := sleep.For(ctx, g.scale.afterBurst); err != nil {
		return err
	}
	after, err := g.plinth.do(order{Do: doUsage})
	f := Figure{
		What:  fmt.Sprintf("resident memory, %v after a burst", g.scale.afterBurst),
		Value: figures.MiB(after.RSS), Unit: "MiB",
		Note: fmt.Sprintf("%s at its end: %s watches of %d creates", figures.Number(figures.MiB(during.RSS))+" MiB", figures.Number(float64(g.scale.burstWatches)), g.scale.burstChanges),
	}
	if g.d.Name == "sqlite" {
		f.Target = figures.AtMost(200)
	}
	g.d.add(f)
	return err
}

// burst makes the changes and returns when each watch has received all of them.
func (g *rig) burst(ctx context.Context) error {
	watching, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var seen sync.WaitGroup
	seen.Add(g.scale.burstWatches)
	watches, err := g.toPlinth.WatchFrom(watching, g.scale.burstWatches, echoPath, func(_ int, stream io.Reader) {
		defer seen.Done()
		if err := readLines(stream, g.scale.burstChanges); err != nil {
			cancel(fmt.Errorf("watch: %w", err))
		}
	})
	if err != nil {
		return err
	}
	defer watches.End()
	var next atomic.Int64
	if _, err := measure.Each(watching, concurrent, g.scale.burstChanges, create(g.toPlinth, "burst-%05d", &next)); err != nil {
		return err
	}
	seen.Wait()
	return context.Cause(watching)
}

// readLines reads that many lines. Each event is one line.
func readLines(stream io.Reader, lines int) error {
	buffer := make([]byte, 4<<10)
	for lines > 0 {
		n, err := stream.Read(buffer)
		lines -= bytes.Count(buffer[:n], []byte{'\n'})
		if err != nil && lines > 0 {
			return fmt.Errorf("%d events are missing: %w", lines, err)
		}
	}
	return nil
}
