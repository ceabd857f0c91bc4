package etcdbench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"github.com/plinth-io/plinth/bench/beside"
	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// requestPatience is how long an endpoint may take to answer.
const requestPatience = 30 * time.Second

// newChurn returns a churn that writes nowhere yet.
func (r *run) newChurn() *beside.Churn {
	return &beside.Churn{Keys: r.scale.churned, Resources: r.scale.resources, Writers: r.scale.churners, For: r.Churn, Rate: r.ChurnRate}
}

func (r *run) measureChurn(ctx context.Context) error {
	return r.compare(ctx, 1, false, r.churn, r.newChurn().Rows(r.scale.watchers, lossTargets)...)
}

// churn lets writers and watchers work on one endpoint.
func (r *run) churn(ctx context.Context, e *endpoint) ([]beside.Sample, error) {
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
	return c.Samples(took, after.since(before), plain), ctx.Err()
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
func (k *churnedKeys) run(ctx context.Context, c *beside.Churn, every time.Duration) time.Duration {
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

// Put implements beside.Store.
func (k *churnedKeys) Put(ctx context.Context, worker, key, n int, at int64) (beside.Answer, error) {
	client := k.e.client(worker).Kubernetes
	got, err := client.OptimisticPut(ctx, k.key(key), valueOf(n), at, kubernetes.PutOptions{GetOnFailure: at != 0})
	switch {
	case err != nil:
		return beside.Answer{}, err
	case got.Succeeded:
		return beside.Answer{OK: true, At: got.Revision}, nil
	case at != 0:
		return found(got.Revision, got.KV), nil
	}
	now, err := client.Get(ctx, k.key(key), kubernetes.GetOptions{})
	if err != nil {
		return beside.Answer{}, nil // nothing was written, and what is there is learned another time
	}
	return found(now.Revision, now.KV), nil
}

// Delete implements beside.Store.
func (k *churnedKeys) Delete(ctx context.Context, worker, key int, at int64) (beside.Answer, error) {
	got, err := k.e.client(worker).Kubernetes.OptimisticDelete(ctx, k.key(key), at, kubernetes.DeleteOptions{GetOnFailure: true})
	switch {
	case err != nil:
		return beside.Answer{}, err
	case got.Succeeded:
		return beside.Answer{OK: true, At: got.Revision}, nil
	}
	return found(got.Revision, got.KV), nil
}

// found is what was there at a revision instead of what was expected.
func found(at int64, kv *mvccpb.KeyValue) (a beside.Answer) {
	if kv == nil {
		return beside.Answer{At: at}
	}
	if n, _, ok := writeOf(kv.Value); ok {
		a = beside.Answer{At: at, Revision: kv.ModRevision, N: n}
	}
	return a
}

// footprint is what an endpoint has on disk and has used.
type footprint struct {
	size  int64 // of the database, bytes
	spent measure.Spent
	known bool // what was spent
}

func (e *endpoint) footprint(ctx context.Context) (f footprint, err error) {
	status, err := e.status(ctx, requestPatience)
	if err != nil {
		return f, err
	}
	f.size = status.DbSize
	f.spent, f.known = measure.Spend(e.pids)
	return f, nil
}

func (f *footprint) since(before footprint) beside.Spent {
	return beside.Spent{
		Grown: f.size - before.size, KnownGrown: true,
		Spent: f.spent.Since(before.spent), Known: f.known && before.known,
	}
}
