package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/plinth-io/plinth/bench/apiload"
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
	var newest bytes.Buffer
	if _, err := g.toPlinth[0].Do(ctx, http.MethodGet, echoPath+"?limit=1", nil, &newest); err != nil {
		return err
	}
	path := fmt.Sprintf("%s?watch=1&resourceVersion=%d", echoPath, apiload.IntField(newest.Bytes(), "resourceVersion"))
	watching, cancel := context.WithCancelCause(ctx)
	var readers sync.WaitGroup
	defer readers.Wait()
	defer cancel(nil)
	var seen sync.WaitGroup
	for i := range g.scale.burstWatches {
		response, err := g.toPlinth[i%connections].Send(watching, http.MethodGet, path, nil)
		if err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		seen.Add(1)
		readers.Go(func() {
			defer response.Body.Close()
			defer seen.Done()
			if err := readLines(response.Body, g.scale.burstChanges); err != nil {
				cancel(fmt.Errorf("watch: %w", err))
			}
		})
	}
	_, err := measure.Each(watching, concurrent, g.scale.burstChanges, func(ctx context.Context, i int) error {
		body := apiload.ConfigMap(fmt.Sprintf("burst-%05d", i), 0, 0)
		_, err := g.toPlinth[i%connections].Do(ctx, http.MethodPost, echoPath, body, nil)
		return err
	})
	if err != nil {
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
