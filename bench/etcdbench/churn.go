package etcdbench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// requestPatience is how long an endpoint may take to answer.
const requestPatience = 30 * time.Second

// newChurn returns a churn that writes nowhere yet.
func (r *run) newChurn() *measure.Churn {
	return &measure.Churn{Keys: r.scale.churned, Resources: r.scale.resources, Writers: r.scale.churners, For: r.Churn, Rate: r.ChurnRate}
}

func (r *run) measureChurn(ctx context.Context) error {
	return r.compare(ctx, 1, false, r.churn, r.newChurn().Rows(r.scale.watchers, lossTargets)...)
}

// churn lets writers and watchers work on one endpoint.
func (r *run) churn(ctx context.Context, e *endpoint) ([]figures.Sample, error) {
	keys := &churnedKeys{e: e, prefix: r.prefix, resources: r.scale.resources}
	audience, err := e.seat(ctx, r.scale.watchers, r.scale.resources, keys.below)
	if err != nil {
		return nil, err
	}
	defer audience.End()
	before, err := e.footprint(ctx)
	if err != nil {
		return nil, err
	}
	c := r.newChurn()
	c.Store, c.Audience = keys, audience
	took := keys.run(ctx, c, r.Churn/time.Duration(r.scale.compactions))
	audience.Settle(ctx)
	after, err := e.footprint(ctx)
	if err != nil {
		return nil, err
	}
	audience.End()
	return c.Samples(took, after.Since(before), plain), ctx.Err()
}

// churnedKeys are the keys of a churn. They belong to resources in turn.
type churnedKeys struct {
	e         *endpoint
	prefix    string
	resources int
}

func (k *churnedKeys) below(resource uint8) string {
	return fmt.Sprintf("%schurned-%02d/", k.prefix, resource)
}

func (k *churnedKeys) key(i int) string {
	return fmt.Sprintf("%s%05d", k.below(uint8(i%k.resources)), i)
}

// run writes for the time of the churn, and compacts meanwhile.
func (k *churnedKeys) run(ctx context.Context, c *measure.Churn, every time.Duration) time.Duration {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var compactor sync.WaitGroup
	compactor.Go(func() { k.compact(ctx, every) })
	took := c.Run(ctx)
	cancel()
	compactor.Wait()
	return took
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
	f = measure.FootprintOf(e.pids)
	f.Size, f.Sized = status.DbSize, true
	return f, nil
}
