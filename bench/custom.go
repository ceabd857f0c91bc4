package bench

import (
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

// This file measures the cost of custom resources: of many definitions, and of requests beside
// those for built-in resources.

// measureCustom measures a plinth of its own, in which it creates a suite of definitions.
func (r *run) measureCustom(ctx context.Context, d *Database, dsn string) (err error) {
	g, err := r.open(ctx, d, dsn, order{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	err = g.steps(ctx, []step{
		{"a suite of definitions", g.measureSuite},
		{"a definition's first object", g.measureFirst},
	})
	if err != nil {
		return err
	}
	// The restart comes before there are objects, because reading objects takes time as well.
	if err := g.measureRestart(ctx); err != nil {
		return err
	}
	return g.steps(ctx, []step{{"custom resources", g.measureResources}})
}

// measureSuite creates many definitions, one after the other as kubectl does, and measures by how
// much memory grows.
func (g *rig) measureSuite(ctx context.Context) error {
	before, err := g.ownWhenIdle(ctx)
	if err != nil {
		return err
	}
	suite := make([]*definition, g.scale.definitions)
	for i := range suite {
		suite[i] = newDefinition("suite", i)
	}
	begun := time.Now()
	if err := g.define(ctx, suite...); err != nil {
		return err
	}
	for _, d := range suite {
		if err := g.toPlinth[0].UntilDone(ctx, http.MethodGet, d.path(), nil); err != nil {
			return err
		}
	}
	what := fmt.Sprintf("%s CRDs", figures.Number(float64(len(suite))))
	g.d.add(Figure{What: what + " applied and served", Value: time.Since(begun).Seconds(), Unit: "s", Target: figures.AtMost(20)})
	after, err := g.ownWhenIdle(ctx)
	f := grown("memory, "+what+" more", before, after)
	f.Target = figures.AtMost(143)
	g.d.add(f)
	return err
}

func (g *rig) define(ctx context.Context, definitions ...*definition) error {
	for _, d := range definitions {
		_, err := g.toPlinth[0].Do(ctx, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", d.body, nil)
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *rig) ownWhenIdle(ctx context.Context) (int64, error) {
	if err := sleep.For(ctx, g.scale.idle); err != nil {
		return 0, err
	}
	a, err := g.plinth.do(order{Do: doUsage})
	return a.Own, err
}

// measureFirst measures the time from sending a definition to having created its first object.
func (g *rig) measureFirst(ctx context.Context) error {
	var took []time.Duration
	for i := range g.scale.rounds {
		d := newDefinition("first", i)
		begun := time.Now()
		if err := g.define(ctx, d); err != nil {
			return err
		}
		if err := g.toPlinth[0].UntilDone(ctx, http.MethodPost, d.path(), d.object("a")); err != nil {
			return err
		}
		took = append(took, time.Since(begun))
	}
	l := figures.LatencyOf(took)
	g.d.add(Figure{What: "CRD to its first object, median", Value: l.P50, Unit: "ms", Target: figures.AtMost(100)})
	g.d.add(Figure{What: fmt.Sprintf("CRD to its first object, worst of %d", len(took)), Value: l.Max, Unit: "ms", Target: figures.AtMost(100)})
	return nil
}

// Paths of the objects that are compared.
const (
	customPath    = "/apis/fifty.bench.example.com/v1/namespaces/bench/fifties"
	configMapPath = "/api/v1/namespaces/bench/configmaps"
)

// measureResources compares custom resources with ConfigMaps that have the same fields and
// as many bytes.
func (g *rig) measureResources(ctx context.Context) error {
	if err := g.define(ctx, &definition{body: fiftyFields()}); err != nil {
		return err
	}
	if err := g.toPlinth[0].UntilDone(ctx, http.MethodGet, customPath, nil); err != nil {
		return err
	}
	var made atomic.Int64
	create := func(path string, object func(string) []byte) apiload.Operation {
		return g.toPlinth.Create(path, func(int) []byte { return object(fmt.Sprintf("object-%07d", made.Add(1))) })
	}
	for path, object := range map[string]func(string) []byte{customPath: fiftyObject, configMapPath: fiftyConfigMap} {
		made.Store(0)
		if _, err := measure.Each(ctx, concurrent, g.scale.customObjects, create(path, object)); err != nil {
			return err
		}
	}
	for _, c := range []struct {
		what            string
		workers         int
		unit            string
		custom, builtin apiload.Operation
	}{
		{"list of " + figures.Number(float64(g.scale.customObjects)) + " custom resources", 1, "lists/s", get(g.toPlinth, customPath), get(g.toPlinth, configMapPath)},
		{"get of custom resources", concurrent, "req/s", get(g.toPlinth, customPath+"/object-0000001"), get(g.toPlinth, configMapPath+"/object-0000001")},
		{"create of custom resources", concurrent, "req/s", create(customPath, fiftyObject), create(configMapPath, fiftyConfigMap)},
	} {
		rounds, err := g.compareWith(ctx, g.plinth, c.workers, c.custom, c.builtin)
		if err != nil {
			return err
		}
		f := rounds.rates(c.what, "ConfigMaps", 1, c.unit)
		f.Target = figures.AtLeast(0.6)
		// CPU time depends less than rates on other programs and on the disk.
		f.Note = fmt.Sprintf("%.2f times the server CPU", rounds.cpu("").Ratio)
		g.d.add(f)
	}
	return nil
}

// measureRestart measures how long plinth takes until it is ready on a database with the suite.
func (g *rig) measureRestart(ctx context.Context) error {
	var seconds figures.Series
	for i := range g.scale.starts {
		g.progress.Say("%s: start with definitions, %d of %d", g.d.Name, i+1, g.scale.starts)
		g.toPlinth.Close()
		if err := errors.Join(g.plinth.stop(), g.plinth.start(ctx, g.plinth.first)); err != nil {
			return err
		}
		took, err := g.plinth.untilReady(ctx)
		if err != nil {
			return err
		}
		seconds.Add(took.Seconds())
	}
	var err error
	if g.toPlinth, err = g.plinth.dial(ctx, "/readyz"); err != nil {
		return err
	}
	what := fmt.Sprintf("start to /readyz, %s CRDs", figures.Number(float64(g.scale.definitions)))
	g.d.add(Figure{What: what, Value: seconds.Median(), Unit: "s", Target: figures.AtMost(2)})
	return nil
}
