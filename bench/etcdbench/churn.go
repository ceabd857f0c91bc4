package etcdbench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"github.com/plinth-io/plinth/bench/measure"
)

// requestPatience is after how long a request of the churn counts as failed, as with
// kube-apiserver's.
const requestPatience = 30 * time.Second

// deleteOneIn is how many writes there are for each deletion.
const deleteOneIn = 10

// churn is many writers on few keys.
type churn struct {
	e        *endpoint
	keys     []*churned
	audience *audience

	mu      sync.Mutex      // guards the two below
	took    []time.Duration // of each write that was acknowledged
	failure error           // the first

	failed, conflicts atomic.Int64
}

// churned is a key that several write to, and what is known of it.
type churned struct {
	key      string
	resource uint8

	mu       sync.Mutex // guards all below
	known    int64      // the revision at which the rest was true
	revision int64      // 0: it is not there
	n        int        // write that made the value
}

func (k *churned) state() (revision int64, n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.revision, k.n
}

func (k *churned) learn(known, revision int64, n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if known >= k.known {
		k.known, k.revision, k.n = known, revision, n
	}
}

// see learns from an answer at a revision, which has the key if it is there.
func (k *churned) see(at int64, kv *mvccpb.KeyValue) {
	if kv == nil {
		k.learn(at, 0, 0)
	} else if n, _, ok := writeOf(kv.Value); ok {
		k.learn(at, kv.ModRevision, n)
	}
}

func (r *run) measureChurn(ctx context.Context) error {
	name := "churn"
	row := func(what, unit string) *Row { return &Row{What: name + ": " + what, Unit: unit, Less: true} }
	rate := "as fast as they can"
	if r.ChurnRate > 0 {
		rate = fmt.Sprintf("at most %s/s", measure.Number(float64(r.ChurnRate)))
	}
	first := &Row{Unit: "/s", What: fmt.Sprintf("churn, %d writers on %s keys %s, %d watchers, %v: writes", r.scale.churners,
		measure.Number(float64(r.scale.churned)), rate, r.scale.watchers, r.Churn)}
	failed, faults := row("failed writes", "writes"), row("events lost, repeated or out of order", "events")
	failed.targets, failed.sum, faults.targets, faults.sum = lossTargets, true, lossTargets, true
	return r.compare(ctx, 1, false, r.churn, first, failed, faults,
		row("p99 delay of watches", "ms"), row("growth of the database", "KiB/write"), row("written to disks", "KiB/write"), row("CPU of the endpoint", "ms/write"))
}

// churn lets writers and watchers work on one endpoint.
func (r *run) churn(ctx context.Context, e *endpoint) ([]sample, error) {
	c := &churn{e: e}
	prefix := func(resource uint8) string { return fmt.Sprintf("%schurned-%02d/", r.prefix, resource) }
	for i := range r.scale.churned {
		resource := uint8(i % r.scale.resources)
		c.keys = append(c.keys, &churned{key: fmt.Sprintf("%s%05d", prefix(resource), i), resource: resource})
	}
	var err error
	if c.audience, err = e.seat(ctx, r.scale.watchers, r.scale.resources, prefix); err != nil {
		return nil, err
	}
	defer c.audience.end()
	before, err := e.footprint(ctx)
	if err != nil {
		return nil, err
	}
	took := c.run(ctx, r)
	c.audience.settle(ctx)
	after, err := e.footprint(ctx)
	if err != nil {
		return nil, err
	}
	c.audience.end()
	return c.samples(took, before, after), ctx.Err()
}

// run writes for the time of the churn, and compacts meanwhile.
func (c *churn) run(ctx context.Context, r *run) time.Duration {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var writers, compactor sync.WaitGroup
	begun := time.Now()
	compactor.Go(func() { c.compact(ctx, r.Churn/time.Duration(r.scale.compactions)) })
	for w := range r.scale.churners {
		writers.Go(func() { c.write(ctx, w, begun, r) })
	}
	writers.Wait()
	took := time.Since(begun)
	cancel()
	compactor.Wait()
	return took
}

// compact makes history end at the newest revision of one interval before, as kube-apiserver does.
func (c *churn) compact(ctx context.Context, every time.Duration) {
	through := int64(0)
	for ctx.Err() == nil {
		if through > 0 {
			_, _ = c.e.clients[0].Compact(ctx, through) // kine does it by itself
		}
		if got, err := c.e.clients[0].Kubernetes.Get(ctx, c.keys[0].key, kubernetes.GetOptions{}); err == nil {
			through = got.Revision
		}
		sleep(ctx, every)
	}
}

// write is one writer.
func (c *churn) write(ctx context.Context, worker int, begun time.Time, r *run) {
	random := rand.New(rand.NewPCG(uint64(worker), 14))
	var took []time.Duration
	for i := worker; ; i += r.scale.churners {
		if r.ChurnRate > 0 {
			sleep(ctx, time.Until(begun.Add(time.Duration(i)*time.Second/time.Duration(r.ChurnRate))))
		}
		if ctx.Err() != nil || time.Since(begun) >= r.Churn {
			break
		}
		sent := time.Now()
		if c.change(ctx, worker, c.keys[random.IntN(len(c.keys))], random.IntN(deleteOneIn) == 0) {
			took = append(took, time.Since(sent))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took = append(c.took, took...)
}

// change makes one change of a key, and says whether it was acknowledged.
func (c *churn) change(ctx context.Context, worker int, k *churned, remove bool) bool {
	ctx, cancel := context.WithTimeout(ctx, requestPatience)
	defer cancel()
	revision, n := k.state()
	var ok bool
	var err error
	switch {
	case revision == 0:
		ok, err = c.create(ctx, worker, k)
	case remove:
		ok, err = c.remove(ctx, worker, k, revision, n)
	default:
		ok, err = c.update(ctx, worker, k, revision)
	}
	switch {
	case err != nil:
		c.fail(err)
	case !ok:
		c.conflicts.Add(1)
	}
	return ok && err == nil
}

func (c *churn) fail(err error) {
	c.failed.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure == nil {
		c.failure = err
	}
}

func (c *churn) create(ctx context.Context, worker int, k *churned) (bool, error) {
	n := c.audience.ledger.begin(k.resource)
	got, err := c.e.client(worker).Kubernetes.OptimisticPut(ctx, k.key, valueOf(n), 0, kubernetes.PutOptions{})
	if ok := c.put(k, n, got, err); ok || err != nil {
		return ok, err
	}
	now, err := c.e.client(worker).Kubernetes.Get(ctx, k.key, kubernetes.GetOptions{})
	if err == nil {
		k.see(now.Revision, now.KV)
	}
	return false, err
}

func (c *churn) update(ctx context.Context, worker int, k *churned, revision int64) (bool, error) {
	n := c.audience.ledger.begin(k.resource)
	got, err := c.e.client(worker).Kubernetes.OptimisticPut(ctx, k.key, valueOf(n), revision, kubernetes.PutOptions{GetOnFailure: true})
	ok := c.put(k, n, got, err)
	if !ok && err == nil {
		k.see(got.Revision, got.KV)
	}
	return ok, err
}

// put notes what became of a put.
func (c *churn) put(k *churned, n int, got kubernetes.PutResponse, err error) bool {
	switch {
	case err != nil:
		c.audience.ledger.put(n, unknown)
		return false
	case got.Succeeded:
		c.audience.ledger.put(n, done)
		k.learn(got.Revision, got.Revision, n)
	}
	return got.Succeeded
}

func (c *churn) remove(ctx context.Context, worker int, k *churned, revision int64, n int) (bool, error) {
	got, err := c.e.client(worker).Kubernetes.OptimisticDelete(ctx, k.key, revision, kubernetes.DeleteOptions{GetOnFailure: true})
	switch {
	case err != nil:
		c.audience.ledger.deleted(n, unknown)
	case got.Succeeded:
		c.audience.ledger.deleted(n, done)
		k.learn(got.Revision, 0, 0)
	default:
		k.see(got.Revision, got.KV)
	}
	return got.Succeeded, err
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

// samples are in the order of the rows of measureChurn.
func (c *churn) samples(took time.Duration, before, after footprint) []sample {
	writes := float64(len(c.took))
	perWrite := func(bytes int64, known bool) sample {
		return sample{
			value: float64(bytes) / 1024 / max(writes, 1), none: !known,
			note: measure.Number(float64(bytes)/(1<<20)) + " MiB in all",
		}
	}
	v := c.audience.judge()
	failed := sample{value: float64(c.failed.Load())}
	if c.failure != nil {
		failed.note = plain(c.failure)
	}
	known := before.known && after.known
	return []sample{
		{value: writes / took.Seconds(), samples: c.took, note: fmt.Sprintf("%s conflicts", measure.Number(float64(c.conflicts.Load())))},
		failed,
		v.faults(),
		v.delay(),
		perWrite(after.size-before.size, true),
		perWrite(after.spent.Written-before.spent.Written, known),
		{value: measure.Millis(after.spent.CPU-before.spent.CPU) / max(writes, 1), none: !known},
	}
}
