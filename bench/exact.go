package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/plinth-io/plinth/bench/apiload"
	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// This file measures the cost of exactness. It compares plinth with itself.

// measureTracking compares updates with updates on a plinth that keeps no managedFields.
func (g *rig) measureTracking(ctx context.Context, dsn string) (err error) {
	bare, err := g.open(ctx, g.d, dsn, order{Bare: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.close()) }()
	if err := fill(ctx, bare.toPlinth, concurrent); err != nil {
		return err
	}
	return g.compareRates(ctx, bare.plinth, concurrent, changeOneField(g.toPlinth), changeOneField(bare.toPlinth),
		Figure{What: "update of one field with managedFields", Floor: "without", Unit: "req/s", Target: figures.AtLeast(0.5)})
}

// compareRates adds figure with the rates of an operation on plinth and of an operation on another
// process, which may be plinth itself.
func (g *rig) compareRates(ctx context.Context, other *process, workers int, plinth, against apiload.Operation, figure Figure) error {
	rounds, err := g.compareWith(ctx, other, workers, plinth, against)
	if err != nil {
		return err
	}
	f := rounds.rates(figure.What, figure.Floor, 1, figure.Unit)
	f.Target = figure.Target
	g.d.add(f)
	return nil
}

// measureApply compares a server-side apply that changes nothing with a get of the same
// object by the same client.
func (g *rig) measureApply(ctx context.Context) error {
	path := echoPath + "/cm-00001"
	body := apiload.ConfigMap("cm-00001", 0, 0)
	apply := func(ctx context.Context, w int) error {
		c := g.toPlinth.Of(w).As("", "application/apply-patch+yaml")
		_, err := c.Do(ctx, http.MethodPatch, path+"?fieldManager=bench&force=true", body, nil)
		return err
	}
	if err := apply(ctx, 0); err != nil { // the first apply changes something
		return err
	}
	return g.compareRates(ctx, g.plinth, concurrent, apply, get(g.toPlinth, path),
		Figure{What: "apply of what is there", Floor: "get", Unit: "req/s", Target: figures.AtLeast(0.7)})
}

// appliers is how many applies are sent at once.
const appliers = 16

// measureApplies compares the CPU time of server-side applies of which one half create an object and the other
// half change one field of an object of the worker's own.
func (g *rig) measureApplies(ctx context.Context) error {
	if err := g.teach(ctx, echoPath+"/cm-00001"); err != nil {
		return err
	}
	var next atomic.Int64
	apply := func(clients apiload.Clients) apiload.Operation {
		turns := make([]int, appliers)
		return func(ctx context.Context, w int) error {
			turns[w]++
			name, n := fmt.Sprintf("applied-by-%02d", w), turns[w]
			if n%2 == 0 {
				name, n = fmt.Sprintf("applied-%07d", next.Add(1)), 0
			}
			c := clients.Of(w).As("", "application/apply-patch+yaml")
			_, err := c.Do(ctx, http.MethodPatch, echoPath+"/"+name+"?fieldManager=bench&force=true", apiload.ConfigMap(name, n, 0), nil)
			return err
		}
	}
	rounds, err := g.compare(ctx, appliers, apply(g.toPlinth), apply(g.toEcho))
	if err != nil {
		return err
	}
	f := rounds.cpu(fmt.Sprintf("apply, half creating, %d at a time, server CPU", appliers))
	f.Target = figures.AtMost(5)
	g.d.add(f)
	return nil
}

// measureProtobufList compares lists in protobuf with lists in JSON, one at a time. During
// the first round, which does not count, the server renders every object once.
func (g *rig) measureProtobufList(ctx context.Context) error {
	protobuf := apiload.Clients{g.toPlinth[0].As("application/vnd.kubernetes.protobuf", "")}
	what := fmt.Sprintf("list of %s in protobuf", figures.Number(float64(g.scale.objects)))
	return g.compareRates(ctx, g.plinth, 1, get(protobuf, echoPath), get(g.toPlinth[:1], echoPath),
		Figure{What: what, Floor: "JSON", Unit: "lists/s", Target: figures.AtLeast(1)})
}

// measureIdleWatches measures by how much memory grows when watches are opened that receive no
// events.
func (g *rig) measureIdleWatches(ctx context.Context) error {
	before, err := g.plinth.do(order{Do: doUsage})
	if err != nil {
		return err
	}
	path := func(i int) string { return fmt.Sprintf("%s?fieldSelector=metadata.name%%3Dnone-%d", echoPath, i) }
	watches, err := g.toPlinth.Watch(ctx, g.scale.idleWatches, path, func(_ int, stream io.Reader) { _, _ = io.Copy(io.Discard, stream) })
	if err != nil {
		return err
	}
	defer watches.End()
	if err := sleep.For(ctx, g.scale.idle); err != nil {
		return err
	}
	after, err := g.plinth.do(order{Do: doUsage})
	if err != nil {
		return err
	}
	f := grown(fmt.Sprintf("memory, %s idle watches more", figures.Number(float64(g.scale.idleWatches))), before.Own, after.Own)
	if g.d.Name == "sqlite" {
		f.Target = figures.AtMost(20)
	}
	g.d.add(f)
	return nil
}
