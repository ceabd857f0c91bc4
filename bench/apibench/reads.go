package apibench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/plinth-io/plinth/bench/apiload"
	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// podNodes is how many nodes the pods of a list are on: 1% of them are on each.
const podNodes = 100

func (r *run) measureStart(ctx context.Context) error {
	return r.MeasureStarts(ctx, "start to ready, empty", r.scale.starts)
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
	err := r.Compare(ctx, 1, false, func(ctx context.Context, s *server) ([]figures.Sample, error) {
		before, err := s.footprint(ctx)
		if err != nil {
			return nil, err
		}
		l, cpu, err := s.loaded(func() (measure.Load, error) {
			return measure.Each(ctx, measure.Concurrent, r.scale.objects, func(ctx context.Context, i int) error {
				_, err := s.Of(i).Do(ctx, http.MethodPost, s.configMaps(), apiload.ConfigMap(object(i), 0, i), nil)
				return err
			})
		})
		if err != nil {
			return nil, err
		}
		after, err := s.footprint(ctx)
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
	return r.Compare(ctx, 1, false, func(_ context.Context, s *server) ([]figures.Sample, error) {
		sample, _ := s.Memory()
		return []figures.Sample{sample}, nil
	}, &figures.Row{What: what, Unit: "MiB", Less: true})
}

// measureEnd measures memory after everything.
func (r *run) measureEnd(ctx context.Context) error {
	_ = sleep.For(ctx, r.scale.settle)
	return r.memory(ctx, "memory after the load")
}

func (r *run) measureGets(ctx context.Context) error {
	get := func(s *server) apiload.Operation {
		var n atomic.Int64
		return s.Get(func(int) string { return s.configMaps() + "/" + object(int(n.Add(1))%r.scale.objects) })
	}
	if err := r.rates(ctx, "get, 64 at a time", measure.Concurrent, get); err != nil {
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
		err := r.times(ctx, l.what, func(s *server) apiload.Operation { return s.List(s.configMaps()+l.query, apiload.ConfigMaps, l.items) })
		if err != nil {
			return err
		}
	}
	what := fmt.Sprintf("list of %s in pages of %d, each page", objects, r.scale.page)
	if err := r.times(ctx, what, func(s *server) apiload.Operation { return s.Pages(s.configMaps(), r.scale.page, r.scale.objects) }); err != nil {
		return err
	}
	return r.measurePods(ctx)
}

// measurePods lists the pods of one node of many. The nodes are not there: controllers delete such pods
// only after 40 seconds, when this has ended.
func (r *run) measurePods(ctx context.Context) error {
	for _, s := range r.Endpoints {
		_, err := measure.Each(ctx, measure.Concurrent, r.scale.pods, func(ctx context.Context, i int) error {
			node := fmt.Sprintf("%s-%02d", r.name, i%podNodes)
			_, err := s.Of(i).Do(ctx, http.MethodPost, s.namespace+"/pods", apiload.Pod(fmt.Sprintf("pod-%05d", i), node), nil)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: create pods: %w", s.Name, err)
		}
	}
	what := fmt.Sprintf("list of 1%% of %s pods by node", figures.Number(float64(r.scale.pods)))
	query := fmt.Sprintf("/pods?fieldSelector=spec.nodeName%%3D%s-07", r.name)
	err := r.times(ctx, what, func(s *server) apiload.Operation {
		return s.List(s.namespace+query, `"nodeName":"`, (r.scale.pods-7+podNodes-1)/podNodes)
	})
	for _, s := range r.Endpoints {
		now := []byte(`{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}`)
		_, e := s.Clients[0].Do(ctx, http.MethodDelete, s.namespace+"/pods", now, nil)
		err = errors.Join(err, e)
	}
	return err
}
