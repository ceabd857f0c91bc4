package apibench

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/plinth-io/plinth/bench/apiload"
	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
)

// appliers is the number of applies that run at once.
const appliers = 16

func (r *run) measureWrites(ctx context.Context) error {
	var next atomic.Int64
	create := func(s *server) apiload.Operation {
		return s.Create(s.configMaps(), func(int) []byte { return apiload.ConfigMap(fmt.Sprintf("alone-%07d", next.Add(1)), 0, 0) })
	}
	if err := r.times(ctx, "create, alone", create); err != nil {
		return err
	}
	if err := r.measureCreates(ctx); err != nil {
		return err
	}
	if err := r.rates(ctx, "update of one field, 64 at a time", measure.Concurrent, update); err != nil {
		return err
	}
	if err := r.rates(ctx, "patch of one field, 64 at a time", measure.Concurrent, patch); err != nil {
		return err
	}
	what := fmt.Sprintf("apply, half creating, half changing one field, %d at a time", appliers)
	return r.rates(ctx, what, appliers, apply)
}

// measureCreates creates in each round, and deletes what it has created.
func (r *run) measureCreates(ctx context.Context) error {
	var turn atomic.Int64
	const creates, deletes = "create, 64 at a time", "delete, 64 at a time"
	return r.Compare(ctx, r.scale.rounds, true, func(ctx context.Context, s *server) ([]figures.Sample, error) {
		prefix := fmt.Sprintf("many-%d-", turn.Add(1))
		var made atomic.Int64
		created, cpu, err := s.loaded(func() (measure.Load, error) {
			return measure.ClosedLoop(ctx, measure.Concurrent, r.scale.round, s.Create(s.configMaps(), func(int) []byte {
				return apiload.ConfigMap(fmt.Sprint(prefix, made.Add(1)), 0, 0)
			}))
		})
		if err != nil {
			return nil, err
		}
		deleted, cpuOfDeletes, err := s.loaded(func() (measure.Load, error) {
			return measure.Each(ctx, measure.Concurrent, int(made.Load()), func(ctx context.Context, i int) error {
				_, err := s.Of(i).Do(ctx, http.MethodDelete, fmt.Sprint(s.configMaps(), "/", prefix, i+1), nil, nil)
				return err
			})
		})
		return []figures.Sample{measure.RateOf(created), cpu, measure.RateOf(deleted), cpuOfDeletes}, err
	}, &figures.Row{What: creates, Unit: "/s"}, cpuOf(creates), &figures.Row{What: deletes, Unit: "/s"}, cpuOf(deletes))
}

func update(s *server) apiload.Operation {
	return s.ChangeOneField(measure.Concurrent, func(worker int) string { return s.configMaps() + "/" + object(worker) })
}

// patch lets each worker change one field of an object of its own by a merge patch.
func patch(s *server) apiload.Operation {
	turns := make([]int, measure.Concurrent)
	return func(ctx context.Context, w int) error {
		turns[w]++
		body := fmt.Appendf(nil, `{"data":{"n":"%012d"}}`, turns[w])
		_, err := s.Of(w).As("", "application/merge-patch+json").Do(ctx, http.MethodPatch, s.configMaps()+"/"+object(w), body, nil)
		return err
	}
}

// apply lets each worker create an object, and then change one of its fields.
func apply(s *server) apiload.Operation {
	turns := make([]int, appliers)
	return func(ctx context.Context, w int) error {
		name, n := fmt.Sprintf("applied-%02d-%06d", w, turns[w]/2), turns[w]%2
		turns[w]++
		c := s.Of(w).As("", "application/apply-patch+yaml")
		_, err := c.Do(ctx, http.MethodPatch, s.configMaps()+"/"+name+"?fieldManager=plinth-bench&force=true", apiload.ConfigMap(name, n, 0), nil)
		return err
	}
}
