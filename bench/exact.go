package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/plinth-io/plinth/bench/apiload"
	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// This file measures the cost of exactness. It compares plinth with itself.

// measureTracking compares updates with updates on a plinth that keeps no managedFields.
func (g *rig) measureTracking(ctx context.Context, dsn string) (err error) {
	s, err := measure.NewScratch(ctx, dsn, g.run.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Drop(context.WithoutCancel(ctx))) }()
	dir := filepath.Join(g.run.dir, "bare")
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	bare, err := g.startProcess(ctx, order{Do: doPlinth, DSN: s.DSN, Dir: dir, Bare: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.stop()) }()
	toBare, err := bare.dialMany(ctx, connections, "/readyz")
	if err != nil {
		return err
	}
	defer apiload.Close(toBare)
	if err := createNamespace(ctx, toBare[0]); err != nil {
		return err
	}
	if err := fill(ctx, toBare, concurrent); err != nil {
		return err
	}
	return g.compareRates(ctx, bare, concurrent, changeOneField(g.toPlinth), changeOneField(toBare),
		Figure{What: "update of one field with managedFields", Floor: "without", Unit: "req/s", Target: figures.AtLeast(0.5)})
}

// compareRates adds figure with the rates of an operation on plinth and of an operation on another
// process, which may be plinth itself.
func (g *rig) compareRates(ctx context.Context, other *process, workers int, plinth, against op, figure Figure) error {
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
		c := g.toPlinth[w%connections].As("", "application/apply-patch+yaml")
		_, err := c.Do(ctx, http.MethodPatch, path+"?fieldManager=bench&force=true", body, nil)
		return err
	}
	get := func(ctx context.Context, w int) error {
		_, err := g.toPlinth[w%connections].Do(ctx, http.MethodGet, path, nil, nil)
		return err
	}
	if err := apply(ctx, 0); err != nil { // the first apply changes something
		return err
	}
	return g.compareRates(ctx, g.plinth, concurrent, apply, get,
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
	apply := func(clients []*apiload.Client) op {
		turns := make([]int, appliers)
		return func(ctx context.Context, w int) error {
			turns[w]++
			name, n := fmt.Sprintf("applied-by-%02d", w), turns[w]
			if n%2 == 0 {
				name, n = fmt.Sprintf("applied-%07d", next.Add(1)), 0
			}
			c := clients[w%connections].As("", "application/apply-patch+yaml")
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
	list := func(c *apiload.Client) op {
		return func(ctx context.Context, _ int) error {
			_, err := c.Do(ctx, http.MethodGet, echoPath, nil, nil)
			return err
		}
	}
	protobuf := g.toPlinth[0].As("application/vnd.kubernetes.protobuf", "")
	what := fmt.Sprintf("list of %s in protobuf", figures.Number(float64(g.scale.objects)))
	return g.compareRates(ctx, g.plinth, 1, list(protobuf), list(g.toPlinth[0]),
		Figure{What: what, Floor: "JSON", Unit: "lists/s", Target: figures.AtLeast(1)})
}

// measureIdleWatches measures by how much memory grows when watches are opened that receive no
// events.
func (g *rig) measureIdleWatches(ctx context.Context) error {
	before, err := g.plinth.do(order{Do: doUsage})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for i := range g.scale.idleWatches {
		path := fmt.Sprintf("%s?watch=1&fieldSelector=metadata.name%%3Dnone-%d", echoPath, i)
		response, err := g.toPlinth[i%connections].Send(ctx, http.MethodGet, path, nil)
		if err != nil {
			return err
		}
		wg.Go(func() {
			<-ctx.Done()
			response.Body.Close()
		})
	}
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
