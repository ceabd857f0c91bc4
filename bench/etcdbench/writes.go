package etcdbench

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
)

// held is a key at a revision.
type held struct {
	key      string
	revision int64
}

// writer makes keys that nobody else writes to.
type writer struct {
	prefix string
	next   atomic.Int64
	turn   []int    // of each worker's updates
	mine   [][]held // of each worker
}

// perWorker is how many keys each worker updates in turn.
const perWorker = 16

// create creates keys for one round and returns them.
func (w *writer) create(ctx context.Context, e *endpoint, workers int, r *run) (measure.Load, []held, error) {
	made := make([][]held, workers)
	l, err := measure.ClosedLoop(ctx, workers, r.scale.round, func(ctx context.Context, worker int) error {
		n := w.next.Add(1)
		key := fmt.Sprintf("%s%08d", w.prefix, n)
		revision, err := e.create(ctx, worker, key, valueOf(int(n)))
		if err == nil {
			made[worker] = append(made[worker], held{key, revision})
		}
		return err
	})
	var all []held
	for _, of := range made {
		all = append(all, of...)
	}
	return l, all, err
}

func (w *writer) delete(ctx context.Context, e *endpoint, keys []held) (measure.Load, error) {
	return measure.Each(ctx, measure.Concurrent, len(keys), func(ctx context.Context, i int) error {
		return e.delete(ctx, i, keys[i].key, keys[i].revision)
	})
}

// update replaces the worker's keys in turn.
func (w *writer) update(ctx context.Context, e *endpoint, worker int) error {
	w.turn[worker]++
	k := &w.mine[worker][w.turn[worker]%perWorker]
	revision, err := e.put(ctx, worker, k.key, valueOf(w.turn[worker]), k.revision)
	if err == nil {
		k.revision = revision
	}
	return err
}

// prepare creates the keys that are updated.
func (w *writer) prepare(ctx context.Context, e *endpoint) error {
	w.turn, w.mine = make([]int, measure.Concurrent), make([][]held, measure.Concurrent)
	for i := range w.mine {
		w.mine[i] = make([]held, perWorker)
	}
	_, err := measure.Each(ctx, measure.Concurrent, measure.Concurrent*perWorker, func(ctx context.Context, i int) (err error) {
		k := &w.mine[i%measure.Concurrent][i/measure.Concurrent]
		k.key = fmt.Sprintf("%supdated-%04d", w.prefix, i)
		k.revision, err = e.create(ctx, i, k.key, valueOf(i))
		return err
	})
	return err
}

func (r *run) measureWrites(ctx context.Context) error {
	writers := map[*endpoint]*writer{}
	for _, e := range r.Endpoints {
		writers[e] = &writer{prefix: r.prefix + "written/"}
	}
	one := func(ctx context.Context, e *endpoint) ([]figures.Sample, error) {
		l, _, err := writers[e].create(ctx, e, 1, r)
		return []figures.Sample{measure.RateOf(l)}, err
	}
	if err := r.Compare(ctx, r.scale.rounds, true, one, &figures.Row{What: "create, 1 at a time", Unit: "/s"}); err != nil {
		return err
	}
	many := func(ctx context.Context, e *endpoint) ([]figures.Sample, error) {
		created, keys, err := writers[e].create(ctx, e, measure.Concurrent, r)
		if err != nil {
			return nil, err
		}
		deleted, err := writers[e].delete(ctx, e, keys)
		return []figures.Sample{measure.RateOf(created), measure.RateOf(deleted)}, err
	}
	creates := &figures.Row{What: "create, 64 at a time", Unit: "/s", Targets: createTargets}
	if err := r.Compare(ctx, r.scale.rounds, true, many, creates, &figures.Row{What: "delete, 64 at a time", Unit: "/s"}); err != nil {
		return err
	}
	update := func(ctx context.Context, e *endpoint) ([]figures.Sample, error) {
		w := writers[e]
		if w.mine == nil {
			if err := w.prepare(ctx, e); err != nil {
				return nil, err
			}
		}
		l, err := measure.ClosedLoop(ctx, measure.Concurrent, r.scale.round, func(ctx context.Context, worker int) error {
			return w.update(ctx, e, worker)
		})
		return []figures.Sample{measure.RateOf(l)}, err
	}
	return r.Compare(ctx, r.scale.rounds, true, update, &figures.Row{What: "update, 64 at a time", Unit: "/s"})
}
