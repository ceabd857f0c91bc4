package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/plinth-io/plinth/bench/apiload"
	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// concurrent is the number of requests that run at once.
const concurrent = 64

// rig is one measurement of plinth and the handlers that it is compared with.
type rig struct {
	*run
	d            *Database
	plinth, echo *process
	toPlinth     []*apiload.Client
	toEcho       []*apiload.Client
}

func (r *run) measureServer(ctx context.Context, d *Database, dsn string) (err error) {
	if err := r.measureStart(ctx, d, dsn); err != nil {
		return err
	}
	s, err := measure.NewScratch(ctx, dsn, r.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Drop(context.WithoutCancel(ctx))) }()
	g := &rig{run: r, d: d}
	if g.plinth, err = r.startProcess(ctx, order{Do: doPlinth, DSN: s.DSN, Dir: filepath.Join(r.dir, "data")}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.plinth.stop(), os.RemoveAll(filepath.Join(r.dir, "data"))) }()
	if g.echo, err = r.startProcess(ctx, order{Do: doEcho}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.echo.stop()) }()
	if err := g.connect(ctx); err != nil {
		return err
	}
	defer apiload.Close(append(g.toPlinth, g.toEcho...))
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
		if err := g.profiled(step.what, func() error { return step.do(ctx) }); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

func (g *rig) profiled(what string, f func() error) error {
	if !g.Profiles {
		return f()
	}
	file, err := filepath.Abs(filepath.Join(g.run.Options.Dir, g.d.Name+"-"+strings.ReplaceAll(what, " ", "-")+".pprof"))
	if err != nil {
		return err
	}
	if _, err := g.plinth.do(order{Do: doProfile, File: file}); err != nil {
		return err
	}
	err = f()
	_, end := g.plinth.do(order{Do: doRest})
	return errors.Join(err, end)
}

// measureStart measures how long plinth takes until it is ready on an empty database.
func (r *run) measureStart(ctx context.Context, d *Database, dsn string) error {
	var seconds []float64
	for i := range r.scale.starts {
		r.progress.Say("%s: start, %d of %d", d.Name, i+1, r.scale.starts)
		took, err := r.start(ctx, dsn)
		if err != nil {
			return fmt.Errorf("start: %w", err)
		}
		seconds = append(seconds, took.Seconds())
	}
	f := Figure{What: "start to /readyz, empty", Value: figures.Median(seconds), Unit: "s"}
	if d.Name == "sqlite" {
		f.Target = figures.AtMost(0.3)
	}
	d.add(f)
	return nil
}

func (r *run) start(ctx context.Context, dsn string) (_ time.Duration, err error) {
	s, err := measure.NewScratch(ctx, dsn, r.dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Drop(context.WithoutCancel(ctx))) }()
	dir := filepath.Join(r.dir, "start")
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p, err := r.startProcess(ctx, order{Do: doPlinth, DSN: s.DSN, Dir: dir})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	c, err := apiload.New(p.config())
	if err != nil {
		return 0, err
	}
	defer apiload.Close([]*apiload.Client{c})
	err = c.UntilReady(ctx)
	return time.Since(p.begun), err
}

func (g *rig) connect(ctx context.Context) (err error) {
	if err := g.connectPlinth(ctx); err != nil {
		return err
	}
	g.toEcho, err = g.echo.dialMany(ctx, connections, plainPath)
	return err
}

func (g *rig) connectPlinth(ctx context.Context) (err error) {
	if g.toPlinth, err = g.plinth.dialMany(ctx, connections, "/readyz"); err != nil {
		return err
	}
	return createNamespace(ctx, g.toPlinth[0])
}

func createNamespace(ctx context.Context, c *apiload.Client) error {
	namespace := []byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"bench"}}`)
	_, err := c.Do(ctx, http.MethodPost, "/api/v1/namespaces", namespace, nil)
	return err
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

func fill(ctx context.Context, clients []*apiload.Client, objects int) error {
	_, err := measure.Each(ctx, concurrent, objects, func(ctx context.Context, i int) error {
		_, err := clients[i%connections].Do(ctx, http.MethodPost, echoPath, apiload.ConfigMap(fmt.Sprintf("cm-%05d", i), 0, 0), nil)
		return err
	})
	return err
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
	get := func(c *apiload.Client, path string) op {
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
	get := func(clients []*apiload.Client) op {
		return func(ctx context.Context, w int) error {
			_, err := clients[w%connections].Do(ctx, http.MethodGet, path, nil, nil)
			return err
		}
	}
	rounds, err := g.compare(ctx, concurrent, get(g.toPlinth), get(g.toEcho))
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
	post := func(clients []*apiload.Client) op {
		return func(ctx context.Context, w int) error {
			body := apiload.ConfigMap(fmt.Sprintf("new-%07d", next.Add(1)), 0, 0)
			_, err := clients[w%connections].Do(ctx, http.MethodPost, echoPath, body, nil)
			return err
		}
	}
	return g.compareWrites(ctx, "create", 4, post(g.toPlinth), post(g.toEcho))
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
func changeOneField(clients []*apiload.Client) op {
	objects := make([]bytes.Buffer, concurrent)
	turns := make([]int, concurrent)
	return func(ctx context.Context, w int) error {
		c, path := clients[w%connections], fmt.Sprintf("%s/cm-%05d", echoPath, w)
		if objects[w].Len() == 0 {
			if _, err := c.Do(ctx, http.MethodGet, path, nil, &objects[w]); err != nil {
				return err
			}
		}
		turns[w]++
		body := bytes.Clone(objects[w].Bytes())
		apiload.SetField(body, "n", fmt.Sprintf("%012d", turns[w]))
		_, err := c.Do(ctx, http.MethodPut, path, body, &objects[w])
		return err
	}
}

func (g *rig) compareWrites(ctx context.Context, what string, most float64, plinth, echo op) error {
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
