package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/plinth-io/plinth/bench/apiload"
	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// concurrent is the number of requests that run at once.
const concurrent = measure.Concurrent

// rig is one measurement of plinth and the handlers that it is compared with.
type rig struct {
	*run
	d            *Database
	plinth, echo *process
	toPlinth     apiload.Clients
	toEcho       apiload.Clients
}

// open starts a plinth on a database of its own, connects to it, and makes the namespace of all objects.
func (r *run) open(ctx context.Context, d *Database, dsn string, o order) (_ *rig, err error) {
	g := &rig{run: r, d: d}
	if g.plinth, err = r.startPlinth(ctx, dsn, o); err != nil {
		return nil, err
	}
	if g.toPlinth, err = g.plinth.dial(ctx, "/readyz"); err == nil {
		_, err = g.toPlinth[0].Do(ctx, http.MethodPost, "/api/v1/namespaces", []byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"bench"}}`), nil)
	}
	if err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

// close ends plinth, and removes its database.
func (g *rig) close() error {
	g.toPlinth.Close()
	return g.plinth.end()
}

func (r *run) measureServer(ctx context.Context, d *Database, dsn string) (err error) {
	if err := r.measureStart(ctx, d, dsn); err != nil {
		return err
	}
	g, err := r.open(ctx, d, dsn, order{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	g.echo = &process{command: r.Command}
	if err := g.echo.start(ctx, order{Do: doEcho}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.echo.stop()) }()
	if g.toEcho, err = g.echo.dial(ctx, plainPath); err != nil {
		return err
	}
	defer g.toEcho.Close()
	// The order matters: memory is measured before and after the objects are created.
	return g.steps(ctx, []step{
		{"memory when idle", g.measureIdle},
		{"memory of idle watches", g.measureIdleWatches},
		{"memory with objects", g.measureFilled},
		{"list", g.measureList},
		{"list in protobuf", g.measureProtobufList},
		{"get", g.measureGet},
		{"watch", g.measureWatch},
		{"watches beside a handler", g.measureFanOut},
		{"memory after a burst of watches", g.measureBurst},
		{"update", g.measureUpdate},
		{"tracking of fields", func(ctx context.Context) error { return g.measureTracking(ctx, dsn) }},
		{"apply", g.measureApply},
		{"applies that change something", g.measureApplies},
		{"create", g.measureCreate},
	})
}

// step is one measurement of a server.
type step struct {
	what string
	do   func(context.Context) error
}

func (g *rig) steps(ctx context.Context, steps []step) error {
	for _, step := range steps {
		g.progress.Say("%s: plinth over HTTPS: %s", g.d.Name, step.what)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// measureStart measures how long plinth takes until it is ready on an empty database.
func (r *run) measureStart(ctx context.Context, d *Database, dsn string) error {
	var seconds figures.Series
	for i := range r.scale.starts {
		r.progress.Say("%s: start, %d of %d", d.Name, i+1, r.scale.starts)
		took, err := r.start(ctx, dsn)
		if err != nil {
			return fmt.Errorf("start: %w", err)
		}
		seconds.Add(took.Seconds())
	}
	f := Figure{What: "start to /readyz, empty", Value: seconds.Median(), Unit: "s"}
	if d.Name == "sqlite" {
		f.Target = figures.AtMost(0.3)
	}
	d.add(f)
	return nil
}

func (r *run) start(ctx context.Context, dsn string) (_ time.Duration, err error) {
	p, err := r.startPlinth(ctx, dsn, order{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	return p.untilReady(ctx)
}

// measureIdle measures resident memory some time after the start.
func (g *rig) measureIdle(ctx context.Context) error {
	return g.measureMemory(ctx, "resident memory, idle", 120)
}

// measureFilled creates the objects that list and get are measured with.
func (g *rig) measureFilled(ctx context.Context) error {
	if err := fill(ctx, g.toPlinth, g.scale.objects); err != nil {
		return err
	}
	return g.measureMemory(ctx, fmt.Sprintf("resident memory, %s ConfigMaps", figures.Number(float64(g.scale.objects))), 200)
}

func fill(ctx context.Context, clients apiload.Clients, objects int) error {
	var next atomic.Int64
	_, err := measure.Each(ctx, concurrent, objects, create(clients, "cm-%05d", &next))
	return err
}

// create returns an operation that creates ConfigMaps whose names have numbers.
func create(clients apiload.Clients, name string, next *atomic.Int64) apiload.Operation {
	return clients.Create(echoPath, func(int) []byte { return apiload.ConfigMap(fmt.Sprintf(name, next.Add(1)-1), 0, 0) })
}

// get returns an operation that reads what is at path.
func get(clients apiload.Clients, path string) apiload.Operation {
	return clients.Get(apiload.At(path))
}

func (g *rig) measureMemory(ctx context.Context, what string, most float64) error {
	if err := sleep.For(ctx, g.scale.idle); err != nil {
		return err
	}
	a, err := g.plinth.do(order{Do: doUsage})
	f := Figure{What: what, Value: figures.MiB(a.RSS), Unit: "MiB"}
	if g.d.Name == "sqlite" {
		f.Target = figures.AtMost(most)
	}
	g.d.add(f)
	return err
}

// measureList compares bytes per second, with one list at a time.
func (g *rig) measureList(ctx context.Context) error {
	var list bytes.Buffer
	if _, err := g.toPlinth[0].Do(ctx, http.MethodGet, echoPath, nil, &list); err != nil {
		return err
	}
	if items := bytes.Count(list.Bytes(), []byte(`"n":"`)); items != g.scale.objects {
		return fmt.Errorf("the list has %d items", items)
	}
	if _, err := g.echo.do(order{Do: doAnswer, Body: list.Bytes()}); err != nil {
		return err
	}
	whole := int64(list.Len())
	get := func(c *apiload.Client, path string) apiload.Operation {
		return func(ctx context.Context, _ int) error {
			n, err := c.Do(ctx, http.MethodGet, path, nil, nil)
			if err == nil && n != whole {
				err = fmt.Errorf("GET %s: %d bytes instead of %d", path, n, whole)
			}
			return err
		}
	}
	rounds, err := g.compare(ctx, 1, get(g.toPlinth[0], echoPath), get(g.toEcho[0], plainPath))
	if err != nil {
		return err
	}
	f := rounds.rates(fmt.Sprintf("list of %s", figures.Number(float64(g.scale.objects))), "net/http", float64(whole)/(1<<20), "MiB/s")
	f.Target = figures.AtLeast(0.5)
	g.d.add(f)
	return nil
}

// measureGet compares requests per second.
func (g *rig) measureGet(ctx context.Context) error {
	path := echoPath + "/cm-00000"
	if err := g.teach(ctx, path); err != nil {
		return err
	}
	rounds, err := g.compare(ctx, concurrent, get(g.toPlinth, path), get(g.toEcho, path))
	if err != nil {
		return err
	}
	f := rounds.rates("get, 64 at a time", "echo", 1, "req/s")
	f.Target = figures.AtLeast(0.6)
	g.d.add(f)
	g.d.add(rounds.cpu("get, server CPU"))
	return nil
}

// teach has the handlers answer with the bytes that plinth answers at path.
func (g *rig) teach(ctx context.Context, path string) error {
	var body bytes.Buffer
	if _, err := g.toPlinth[0].Do(ctx, http.MethodGet, path, nil, &body); err != nil {
		return err
	}
	_, err := g.echo.do(order{Do: doAnswer, Body: body.Bytes()})
	return err
}

// measureCreate compares CPU time for each request.
func (g *rig) measureCreate(ctx context.Context) error {
	if err := g.teach(ctx, echoPath+"/cm-00000"); err != nil {
		return err
	}
	var next atomic.Int64
	return g.compareWrites(ctx, "create", 4, create(g.toPlinth, "new-%07d", &next), create(g.toEcho, "new-%07d", &next))
}

// measureUpdate compares CPU time for each request. Each worker changes one field of an object of
// its own, in the last answer of the server.
func (g *rig) measureUpdate(ctx context.Context) error {
	if err := g.teach(ctx, echoPath+"/cm-00000"); err != nil {
		return err
	}
	return g.compareWrites(ctx, "update of one field", 5, changeOneField(g.toPlinth), changeOneField(g.toEcho))
}

// changeOneField lets each worker update an object of its own.
func changeOneField(clients apiload.Clients) apiload.Operation {
	return clients.ChangeOneField(concurrent, func(worker int) string { return fmt.Sprintf("%s/cm-%05d", echoPath, worker) })
}

func (g *rig) compareWrites(ctx context.Context, what string, most float64, plinth, echo apiload.Operation) error {
	rounds, err := g.compare(ctx, concurrent, plinth, echo)
	if err != nil {
		return err
	}
	f := rounds.rates(what+", 64 at a time", "echo", 1, "req/s")
	f.Against, f.Floor, f.Ratio = 0, "", 0 // rates cannot be compared, because only plinth waits for a disk
	g.d.add(f)
	f = rounds.cpu(what + ", server CPU")
	if g.d.Name == "sqlite" {
		f.Target = figures.AtMost(most)
	}
	g.d.add(f)
	return nil
}
