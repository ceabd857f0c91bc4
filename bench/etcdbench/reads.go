package etcdbench

import (
	"context"
	"fmt"
	"sync/atomic"

	"go.etcd.io/etcd/client/v3/kubernetes"

	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
)

// fill writes the keys that reads are measured on, and, below another prefix, those that make a
// database with many keys of them.
func (r *run) fill(ctx context.Context) error {
	row := &figures.Row{What: fmt.Sprintf("fill: %s keys of 1 KiB, 64 at a time", figures.Number(float64(r.scale.keys))), Unit: "/s"}
	return r.Compare(ctx, 1, false, func(ctx context.Context, e *endpoint) ([]figures.Sample, error) {
		l, err := measure.Each(ctx, measure.Concurrent, r.scale.keys, func(ctx context.Context, i int) error {
			_, err := e.create(ctx, i, r.filled(i), valueOf(i))
			return err
		})
		return []figures.Sample{measure.RateOf(l)}, err
	}, row)
}

func (r *run) listed() string { return r.prefix + "listed/" }

func (r *run) filled(i int) string {
	if i < r.scale.objects {
		return fmt.Sprintf("%s%06d", r.listed(), i)
	}
	return fmt.Sprintf("%sothers/%06d", r.prefix, i)
}

func (r *run) measureReads(ctx context.Context) error {
	objects := figures.Number(float64(r.scale.objects))
	if err := r.Compare(ctx, r.scale.rounds, true, r.get, &figures.Row{What: "Range of one key, 64 at a time", Unit: "/s"}); err != nil {
		return err
	}
	page := &figures.Row{What: fmt.Sprintf("Range, page of %d of %s keys", r.scale.page, objects), Unit: "ms", Less: true, Targets: pageTargets}
	if err := r.Compare(ctx, r.scale.rounds, true, r.page, page); err != nil {
		return err
	}
	whole := &figures.Row{What: fmt.Sprintf("Range of all %s keys", objects), Unit: "ms", Less: true}
	return r.Compare(ctx, r.scale.rounds, true, r.whole, whole)
}

func (r *run) get(ctx context.Context, e *endpoint) ([]figures.Sample, error) {
	var n atomic.Int64
	l, err := measure.ClosedLoop(ctx, measure.Concurrent, r.scale.round, func(ctx context.Context, worker int) error {
		key := r.filled(int(n.Add(1)) % r.scale.objects)
		got, err := e.client(worker).Kubernetes.Get(ctx, key, kubernetes.GetOptions{})
		if err == nil && got.KV == nil {
			err = fmt.Errorf("%s is missing", key)
		}
		return err
	})
	return []figures.Sample{measure.RateOf(l)}, err
}

// page reads pages as kube-apiserver does: all at the revision of the first one.
func (r *run) page(ctx context.Context, e *endpoint) ([]figures.Sample, error) {
	var o kubernetes.ListOptions
	seen := 0
	l, err := measure.ClosedLoop(ctx, 1, r.scale.round, func(ctx context.Context, _ int) error {
		o.Limit = r.scale.page
		got, err := e.clients[0].Kubernetes.List(ctx, r.listed(), o)
		if err != nil {
			return err
		}
		seen += len(got.Kvs)
		if int64(len(got.Kvs)) < r.scale.page || seen >= r.scale.objects {
			if seen != r.scale.objects {
				return fmt.Errorf("the pages have %d keys instead of %d", seen, r.scale.objects)
			}
			o, seen = kubernetes.ListOptions{}, 0
			return nil
		}
		if o.Revision == 0 {
			o.Revision = got.Revision
		}
		o.Continue = string(got.Kvs[len(got.Kvs)-1].Key) + "\x00"
		return nil
	})
	return []figures.Sample{measure.MeanOf(l)}, err
}

func (r *run) whole(ctx context.Context, e *endpoint) ([]figures.Sample, error) {
	l, err := measure.ClosedLoop(ctx, 1, r.scale.round, func(ctx context.Context, _ int) error {
		got, err := e.clients[0].Kubernetes.List(ctx, r.listed(), kubernetes.ListOptions{})
		if err == nil && len(got.Kvs) != r.scale.objects {
			err = fmt.Errorf("the list has %d keys instead of %d", len(got.Kvs), r.scale.objects)
		}
		return err
	})
	return []figures.Sample{measure.MeanOf(l)}, err
}
