package etcdbench

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/client/v3/kubernetes"

	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

func (r *run) measureStart(ctx context.Context) error {
	return r.MeasureStarts(ctx, "start to the first answer, empty", r.scale.starts)
}

// measureMemory measures resident memory with all keys, then the CPU time of doing nothing, and then
// memory again after all keys were read, as each start of a kube-apiserver does.
func (r *run) measureMemory(ctx context.Context) error {
	keys := figures.Number(float64(r.scale.keys)) + " keys of 1 KiB"
	_ = sleep.For(ctx, r.scale.settle)
	if err := r.Compare(ctx, 1, false, memory, &figures.Row{What: "memory, " + keys, Unit: "MiB", Less: true, Targets: memoryTargets}); err != nil {
		return err
	}
	if err := r.measureIdle(ctx); err != nil {
		return err
	}
	err := r.Compare(ctx, 1, false, r.readAll, &figures.Row{What: "Range of " + keys + " in pages", Unit: "ms", Less: true})
	if err != nil {
		return err
	}
	_ = sleep.For(ctx, r.scale.settle)
	return r.Compare(ctx, 1, false, memory, &figures.Row{What: "memory, " + keys + ", after all were read", Unit: "MiB", Less: true, Targets: memoryTargets})
}

// memory is that of the endpoint itself.
func memory(_ context.Context, e *endpoint) ([]figures.Sample, error) {
	sample, spent := e.Memory()
	sample.Note = figures.Number(figures.MiB(spent.Private)) + " MiB without pages of files"
	return []figures.Sample{sample}, nil
}

func (r *run) measureIdle(ctx context.Context) error {
	before := map[*endpoint]measure.Spent{}
	for _, e := range r.Endpoints {
		before[e], _ = measure.Spend(e.PIDs)
	}
	r.Line.Say("idle")
	_ = sleep.For(ctx, r.scale.idle)
	return r.Compare(ctx, 1, false, func(_ context.Context, e *endpoint) ([]figures.Sample, error) {
		s, known := measure.Spend(e.PIDs)
		used := figures.Millis(s.CPU - before[e].CPU)
		return []figures.Sample{{Value: used / r.scale.idle.Seconds(), None: !known}}, nil
	}, &figures.Row{What: "idle CPU", Unit: "ms/s", Less: true})
}

// readAll reads all keys of the run in pages, once.
func (r *run) readAll(ctx context.Context, e *endpoint) ([]figures.Sample, error) {
	begun, seen := time.Now(), 0
	for o := (kubernetes.ListOptions{Limit: r.scale.page}); ; {
		got, err := e.clients[0].Kubernetes.List(ctx, r.prefix, o)
		if err != nil {
			return nil, err
		}
		seen += len(got.Kvs)
		if int64(len(got.Kvs)) < o.Limit || seen >= r.scale.keys {
			break
		}
		o.Continue = string(got.Kvs[len(got.Kvs)-1].Key) + "\x00"
		o.Revision = got.Revision
	}
	if seen != r.scale.keys {
		return nil, fmt.Errorf("the pages have %d keys instead of %d", seen, r.scale.keys)
	}
	return []figures.Sample{{Value: figures.Millis(time.Since(begun))}}, nil
}
