package apibench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/plinth-io/plinth/bench/apiload"
	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// podNodes is how many nodes the pods of a list are on: 1% of them are on each.
const podNodes = 100

// measureStart measures how long plinth takes until it is ready on an empty database. Others run already.
func (r *run) measureStart(ctx context.Context) error {
	row := &figures.Row{What: "start to ready, empty", Unit: "ms", Less: true}
	r.report.Rows = append(r.report.Rows, row)
	for i := range r.scale.starts {
		for _, dsn := range r.DSNs {
			r.progress.Say("%s: start, %d of %d", dialects.Scheme(dsn), i+1, r.scale.starts)
			own, err := apiload.StartOwn(ctx, r.Command, r.dir, dsn)
			if err != nil {
				return fmt.Errorf("%s: %w", dialects.Scheme(dsn), err)
			}
			row.Cell(own.Name).Add(figures.Sample{Value: figures.Millis(own.Took)})
			if err := errors.Join(own.Stop(ctx), ctx.Err()); err != nil {
				return err
			}
		}
	}
	return nil
}

func object(i int) string { return fmt.Sprintf("cm-%05d", i) }

// measureFill creates the objects that are read, and measures memory before and after.
func (r *run) measureFill(ctx context.Context) error {
	objects := figures.Number(float64(r.scale.objects)) + " ConfigMaps"
	_ = sleep.For(ctx, r.scale.settle)
	if err := r.memory(ctx, "memory, idle"); err != nil {
		return err
	}
	what := "create " + objects + ", 64 at a time"
	per := func(what string) *figures.Row { return &figures.Row{What: what, Unit: "KiB/object", Less: true} }
	err := r.compare(ctx, 1, false, func(ctx context.Context, s *server) ([]figures.Sample, error) {
		before, err := s.footprint()
		if err != nil {
			return nil, err
		}
		l, cpu, err := s.loaded(func() (measure.Load, error) {
			return measure.Each(ctx, concurrent, r.scale.objects, func(ctx context.Context, i int) error {
				_, err := s.client(i).Do(ctx, http.MethodPost, s.configMaps(), apiload.ConfigMap(object(i), 0, i), nil)
				return err
			})
		})
		if err != nil {
			return nil, err
		}
		after, err := s.footprint()
		spent := after.Since(before)
		kib := func(bytes int64) float64 { return float64(bytes) / 1024 / float64(l.Ops) }
		return []figures.Sample{measure.RateOf(l), cpu, {Value: kib(spent.Size), None: !spent.Sized}, {Value: kib(spent.Spent.Written), None: !spent.Known}}, err
	}, &figures.Row{What: what, Unit: "/s"}, cpuOf(what), per("create: growth of the database"), per("create: written to disks"))
	if err != nil {
		return err
	}
	_ = sleep.For(ctx, r.scale.settle)
	return r.memory(ctx, "memory, "+objects)
}

func (r *run) memory(ctx context.Context, what string) error {
	return r.compare(ctx, 1, false, func(ctx context.Context, s *server) ([]figures.Sample, error) { return s.memory(ctx) },
		&figures.Row{What: what, Unit: "MiB", Less: true})
}

// measureEnd measures memory after everything.
func (r *run) measureEnd(ctx context.Context) error {
	_ = sleep.For(ctx, r.scale.settle)
	return r.memory(ctx, "memory after the load")
}

func (r *run) measureGets(ctx context.Context) error {
	get := func(s *server) op {
		var n atomic.Int64
		return func(ctx context.Context, worker int) error {
			path := s.configMaps() + "/" + object(int(n.Add(1))%r.scale.objects)
			_, err := s.client(worker).Do(ctx, http.MethodGet, path, nil, nil)
			return err
		}
	}
	if err := r.rates(ctx, "get, 64 at a time", concurrent, get); err != nil {
		return err
	}
	return r.times(ctx, "get, alone", get)
}

func (r *run) measureLists(ctx context.Context) error {
	objects := figures.Number(float64(r.scale.objects))
	for _, l := range []struct {
		what, query string
		items       int // at least; a controller may add some
	}{
		{"list of " + objects, "", r.scale.objects},
		{"list of 1% of " + objects + " by label", "?" + apiload.PartSelector(7), (r.scale.objects - 7 + apiload.Parts - 1) / apiload.Parts},
		{"list of 1 of " + objects + " by field", "?fieldSelector=metadata.name%3D" + object(r.scale.objects/2), 1},
	} {
		err := r.times(ctx, l.what, func(s *server) op { return lists(s, s.configMaps()+l.query, `"sent":"`, l.items) })
		if err != nil {
			return err
		}
	}
	what := fmt.Sprintf("list of %s in pages of %d, each page", objects, r.scale.page)
	if err := r.times(ctx, what, func(s *server) op { return r.pages(s) }); err != nil {
		return err
	}
	return r.measurePods(ctx)
}

// lists returns an operation that lists, and counts items by a mark that each has once.
func lists(s *server, path, mark string, items int) op {
	var answer bytes.Buffer
	return func(ctx context.Context, _ int) error {
		if _, err := s.clients[0].Do(ctx, http.MethodGet, path, nil, &answer); err != nil {
			return err
		}
		if got := bytes.Count(answer.Bytes(), []byte(mark)); got != items {
			return fmt.Errorf("GET %s: %d objects instead of %d", path, got, items)
		}
		return nil
	}
}

// pages reads one page after the other, and begins again after the last.
func (r *run) pages(s *server) op {
	var answer bytes.Buffer
	next, seen := "", 0
	return func(ctx context.Context, _ int) error {
		path := fmt.Sprintf("%s?limit=%d&continue=%s", s.configMaps(), r.scale.page, url.QueryEscape(next))
		if _, err := s.clients[0].Do(ctx, http.MethodGet, path, nil, &answer); err != nil {
			return err
		}
		seen += bytes.Count(answer.Bytes(), []byte(`"sent":"`))
		if next = apiload.TextField(answer.Bytes(), "continue"); next != "" {
			return nil
		}
		if seen != r.scale.objects {
			return fmt.Errorf("the pages have %d objects instead of %d", seen, r.scale.objects)
		}
		seen = 0
		return nil
	}
}

// measurePods lists the pods of one node of many. The nodes are not there: controllers delete such pods
// only after 40 seconds, when this has ended.
func (r *run) measurePods(ctx context.Context) error {
	for _, s := range r.servers {
		_, err := measure.Each(ctx, concurrent, r.scale.pods, func(ctx context.Context, i int) error {
			node := fmt.Sprintf("%s-%02d", r.name, i%podNodes)
			_, err := s.client(i).Do(ctx, http.MethodPost, s.namespace+"/pods", apiload.Pod(fmt.Sprintf("pod-%05d", i), node), nil)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: create pods: %w", s.Name, err)
		}
	}
	what := fmt.Sprintf("list of 1%% of %s pods by node", figures.Number(float64(r.scale.pods)))
	query := fmt.Sprintf("/pods?fieldSelector=spec.nodeName%%3D%s-07", r.name)
	err := r.times(ctx, what, func(s *server) op {
		return lists(s, s.namespace+query, `"nodeName":"`, (r.scale.pods-7+podNodes-1)/podNodes)
	})
	for _, s := range r.servers {
		now := []byte(`{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}`)
		_, e := s.clients[0].Do(ctx, http.MethodDelete, s.namespace+"/pods", now, nil)
		err = errors.Join(err, e)
	}
	return err
}
