package etcdbench

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// requestPatience is how long an endpoint may take to answer.
const requestPatience = 30 * time.Second

// measureChurn lets writers and watchers work, and compacts meanwhile.
func (r *run) measureChurn(ctx context.Context) error {
	return r.MeasureChurn(ctx, r.scale.churn, func(ctx context.Context, e *endpoint, c *measure.Churn) (err error) {
		keys := &churnedKeys{e, c.Resources}
		c.Store, c.Footprint = keys, e.footprint
		c.Meanwhile = func(ctx context.Context) { keys.compact(ctx, c.For/time.Duration(r.scale.compactions)) }
		c.Audience, err = e.seat(ctx, c.Watches, c.Resources, keys.below)
		return err
	})
}

// churnedKeys are the keys of a churn. They belong to resources in turn.
type churnedKeys struct {
	e         *endpoint
	resources int
}

func (k *churnedKeys) below(resource uint8) string {
	return fmt.Sprintf("%schurned-%02d/", k.e.prefix, resource)
}

func (k *churnedKeys) key(i int) string {
	return fmt.Sprintf("%s%05d", k.below(uint8(i%k.resources)), i)
}

// compact makes history end at the newest revision of one interval before, as kube-apiserver does.
func (k *churnedKeys) compact(ctx context.Context, every time.Duration) {
	through := int64(0)
	for ctx.Err() == nil {
		if through > 0 {
			_, _ = k.e.clients[0].Compact(ctx, through) // kine does it by itself
		}
		if got, err := k.e.clients[0].Kubernetes.Get(ctx, k.key(0), kubernetes.GetOptions{}); err == nil {
			through = got.Revision
		}
		_ = sleep.For(ctx, every)
	}
}

// Put implements measure.Store.
func (k *churnedKeys) Put(ctx context.Context, worker, key, n int, at int64) (measure.Answer, error) {
	client := k.e.client(worker).Kubernetes
	got, err := client.OptimisticPut(ctx, k.key(key), valueOf(n), at, kubernetes.PutOptions{GetOnFailure: at != 0})
	switch {
	case err != nil:
		return measure.Answer{}, err
	case got.Succeeded:
		return measure.Answer{OK: true, At: got.Revision}, nil
	case at != 0:
		return found(got.Revision, got.KV), nil
	}
	now, err := client.Get(ctx, k.key(key), kubernetes.GetOptions{})
	if err != nil {
		return measure.Answer{}, nil // nothing was written, and what is there is learned another time
	}
	return found(now.Revision, now.KV), nil
}

// Delete implements measure.Store.
func (k *churnedKeys) Delete(ctx context.Context, worker, key int, at int64) (measure.Answer, error) {
	got, err := k.e.client(worker).Kubernetes.OptimisticDelete(ctx, k.key(key), at, kubernetes.DeleteOptions{GetOnFailure: true})
	switch {
	case err != nil:
		return measure.Answer{}, err
	case got.Succeeded:
		return measure.Answer{OK: true, At: got.Revision}, nil
	}
	return found(got.Revision, got.KV), nil
}

// found is what was there at a revision instead of what was expected.
func found(at int64, kv *mvccpb.KeyValue) (a measure.Answer) {
	if kv == nil {
		return measure.Answer{At: at}
	}
	if n, _, ok := writeOf(kv.Value); ok {
		a = measure.Answer{At: at, Revision: kv.ModRevision, N: n}
	}
	return a
}

func (e *endpoint) footprint(ctx context.Context) (f measure.Footprint, err error) {
	status, err := e.status(ctx, requestPatience)
	if err != nil {
		return f, err
	}
	f = measure.FootprintOf(e.PIDs)
	f.Size, f.Sized = status.DbSize, true
	return f, nil
}
