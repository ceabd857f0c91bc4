package apibench

import (
	"bytes"
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
	create := func(s *server) op {
		return func(ctx context.Context, worker int) error {
			body := apiload.ConfigMap(fmt.Sprintf("alone-%07d", next.Add(1)), 0, 0)
			_, err := s.client(worker).Do(ctx, http.MethodPost, s.configMaps(), body, nil)
			return err
		}
	}
	if err := r.times(ctx, "create, alone", create); err != nil {
		return err
	}
	if err := r.measureCreates(ctx); err != nil {
		return err
	}
	if err := r.rates(ctx, "update of one field, 64 at a time", concurrent, update); err != nil {
		return err
	}
	if err := r.rates(ctx, "patch of one field, 64 at a time", concurrent, patch); err != nil {
		return err
	}
	what := fmt.Sprintf("apply, half creating, half changing one field, %d at a time", appliers)
	return r.rates(ctx, what, appliers, apply)
}

// measureCreates creates in each round, and deletes what it has created.
func (r *run) measureCreates(ctx context.Context) error {
	var turn atomic.Int64
	const creates, deletes = "create, 64 at a time", "delete, 64 at a time"
	return r.compare(ctx, r.scale.rounds, true, func(ctx context.Context, s *server) ([]figures.Sample, error) {
		prefix := fmt.Sprintf("many-%d-", turn.Add(1))
		var made atomic.Int64
		created, cpu, err := s.loaded(func() (measure.Load, error) {
			return measure.ClosedLoop(ctx, concurrent, r.scale.round, func(ctx context.Context, worker int) error {
				body := apiload.ConfigMap(fmt.Sprint(prefix, made.Add(1)), 0, 0)
				_, err := s.client(worker).Do(ctx, http.MethodPost, s.configMaps(), body, nil)
				return err
			})
		})
		if err != nil {
			return nil, err
		}
		deleted, cpuOfDeletes, err := s.loaded(func() (measure.Load, error) {
			return measure.Each(ctx, concurrent, int(made.Load()), func(ctx context.Context, i int) error {
				_, err := s.client(i).Do(ctx, http.MethodDelete, fmt.Sprint(s.configMaps(), "/", prefix, i+1), nil, nil)
				return err
			})
		})
		return []figures.Sample{measure.RateOf(created), cpu, measure.RateOf(deleted), cpuOfDeletes}, err
	}, &figures.Row{What: creates, Unit: "/s"}, cpuOf(creates), &figures.Row{What: deletes, Unit: "/s"}, cpuOf(deletes))
}

// update lets each worker change one field of an object of its own, in the last answer of the server.
func update(s *server) op {
	objects := make([]bytes.Buffer, concurrent)
	turns := make([]int, concurrent)
	return func(ctx context.Context, w int) error {
		c, path := s.client(w), s.configMaps()+"/"+object(w)
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

// patch lets each worker change one field of an object of its own by a merge patch.
func patch(s *server) op {
	turns := make([]int, concurrent)
	return func(ctx context.Context, w int) error {
		turns[w]++
		body := fmt.Appendf(nil, `{"data":{"n":"%012d"}}`, turns[w])
		_, err := s.client(w).As("", "application/merge-patch+json").Do(ctx, http.MethodPatch, s.configMaps()+"/"+object(w), body, nil)
		return err
	}
}

// apply lets each worker create an object, and then change one of its fields.
func apply(s *server) op {
	turns := make([]int, appliers)
	return func(ctx context.Context, w int) error {
		name, n := fmt.Sprintf("applied-%02d-%06d", w, turns[w]/2), turns[w]%2
		turns[w]++
		c := s.client(w).As("", "application/apply-patch+yaml")
		_, err := c.Do(ctx, http.MethodPatch, s.configMaps()+"/"+name+"?fieldManager=plinth-bench&force=true", apiload.ConfigMap(name, n, 0), nil)
		return err
	}
}
