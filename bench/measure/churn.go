package measure

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// requestPatience is after how long a request of the churn counts as failed, as with kube-apiserver's.
const requestPatience = 30 * time.Second

// deleteOneIn is how many writes there are for each deletion.
const deleteOneIn = 10

// Store is what a churn writes to. Keys are numbers. A write is of a key that is at a revision, 0 if it is
// not there.
type Store interface {
	Put(ctx context.Context, worker, key, n int, at int64) (Answer, error)
	Delete(ctx context.Context, worker, key int, at int64) (Answer, error)
}

// Answer is what a store says to a write.
type Answer struct {
	OK bool // it was written

	// At is the revision of the write; if there was none, one at which the rest is true, or 0 if nothing is
	// known.
	At       int64
	Revision int64 // of the key that is there instead, 0: none
	N        int   // write that made it
}

// ChurnSize is how much work a churn is.
type ChurnSize struct {
	Writers   int
	Keys      int
	Resources int // that keys belong to in turn; each watch is of one
	Watches   int
}

// Churn is many writers on few keys, which others watch.
type Churn struct {
	ChurnSize
	Store     Store
	Audience  *Audience
	Footprint func(context.Context) (Footprint, error) // of the server
	Meanwhile func(context.Context)                    // what else is done until the writers have ended; nil: nothing
	For       time.Duration
	Rate      int // most writes a second; 0: as many as they can

	keys  []*churned
	begun time.Time

	mu      sync.Mutex      // guards the two below
	took    []time.Duration // of each write that was acknowledged
	failure error           // the first

	failed, conflicts atomic.Int64
}

// churned is a key that several write to, and what is known of it.
type churned struct {
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

// Measure writes, waits for the events, and returns samples in the order of Rows.
func (c *Churn) Measure(ctx context.Context, plain func(error) string) ([]figures.Sample, error) {
	defer c.Audience.End()
	before, err := c.Footprint(ctx)
	if err != nil {
		return nil, err
	}
	took := c.run(ctx)
	c.Audience.settle(ctx)
	after, err := c.Footprint(ctx)
	if err != nil {
		return nil, err
	}
	c.Audience.End()
	return c.samples(took, after.Since(before), plain), ctx.Err()
}

// run writes until the time is over and returns how long that took.
func (c *Churn) run(ctx context.Context) time.Duration {
	c.keys = make([]*churned, c.Keys)
	for i := range c.keys {
		c.keys[i] = &churned{}
	}
	var writers, others sync.WaitGroup
	meanwhile, cancel := context.WithCancel(ctx)
	defer others.Wait()
	defer cancel()
	if c.Meanwhile != nil {
		others.Go(func() { c.Meanwhile(meanwhile) })
	}
	c.begun = time.Now()
	for w := range c.Writers {
		writers.Go(func() { c.write(ctx, w) })
	}
	writers.Wait()
	return time.Since(c.begun)
}

// write is one writer.
func (c *Churn) write(ctx context.Context, worker int) {
	random := rand.New(rand.NewPCG(uint64(worker), 14))
	var took []time.Duration
	for i := worker; ; i += c.Writers {
		if c.Rate > 0 {
			_ = sleep.Until(ctx, c.begun.Add(time.Duration(i)*time.Second/time.Duration(c.Rate)))
		}
		if ctx.Err() != nil || time.Since(c.begun) >= c.For {
			break
		}
		sent := time.Now()
		if c.change(ctx, worker, random.IntN(len(c.keys)), random.IntN(deleteOneIn) == 0) {
			took = append(took, time.Since(sent))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took = append(c.took, took...)
}

// change makes one change of a key, and says whether it was acknowledged.
func (c *Churn) change(ctx context.Context, worker, key int, remove bool) bool {
	ctx, cancel := context.WithTimeout(ctx, requestPatience)
	defer cancel()
	k := c.keys[key]
	revision, n := k.state()
	var a Answer
	var err error
	if remove && revision != 0 {
		a, err = c.Store.Delete(ctx, worker, key, revision)
		c.Audience.Ledger.Deleted(n, outcome(a, err))
		if a.OK {
			k.learn(a.At, 0, 0)
		}
	} else {
		n = c.Audience.Ledger.Begin(uint8(key % c.Resources))
		a, err = c.Store.Put(ctx, worker, key, n, revision)
		c.Audience.Ledger.Put(n, outcome(a, err))
		if a.OK {
			k.learn(a.At, a.At, n)
		}
	}
	switch {
	case err != nil:
		c.fail(err)
	case !a.OK:
		c.conflicts.Add(1)
		if a.At > 0 {
			k.learn(a.At, a.Revision, a.N)
		}
	}
	return a.OK && err == nil
}

func outcome(a Answer, err error) Outcome {
	switch {
	case err != nil:
		return Unknown
	case a.OK:
		return Done
	}
	return not
}

func (c *Churn) fail(err error) {
	c.failed.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure == nil {
		c.failure = err
	}
}

// Rows are those of a churn.
func (c *Churn) Rows() []*figures.Row {
	row := func(what, unit string) *figures.Row {
		return &figures.Row{What: "churn: " + what, Unit: unit, Less: true}
	}
	rate := "as fast as they can"
	if c.Rate > 0 {
		rate = fmt.Sprintf("at most %s/s", figures.Number(float64(c.Rate)))
	}
	first := &figures.Row{Unit: "/s", What: fmt.Sprintf("churn, %d writers on %s keys %s, %d watchers, %v: writes", c.Writers,
		figures.Number(float64(c.Keys)), rate, c.Watches, c.For)}
	failed, missing := row("failed writes", "writes"), row("events lost, repeated or out of order", "events")
	failed.Targets, failed.Sum, missing.Targets, missing.Sum = NoFaults, true, NoFaults, true
	return []*figures.Row{
		first, failed, missing,
		row("p99 delay of watches", "ms"), row("growth of the database", "KiB/write"), row("written to disks", "KiB/write"), row("CPU of the endpoint", "ms/write"),
	}
}

// samples are in the order of Rows. The audience has ended.
func (c *Churn) samples(took time.Duration, used Footprint, plain func(error) string) []figures.Sample {
	writes := float64(len(c.took))
	perWrite := func(bytes int64, known bool) figures.Sample {
		return figures.Sample{
			Value: float64(bytes) / 1024 / max(writes, 1), None: !known,
			Note: figures.Number(figures.MiB(bytes)) + " MiB in all",
		}
	}
	v := c.Audience.Judge()
	failed := figures.Sample{Value: float64(c.failed.Load())}
	if c.failure != nil {
		failed.Note = plain(c.failure)
	}
	return []figures.Sample{
		{Value: writes / took.Seconds(), Samples: c.took, Note: fmt.Sprintf("%s conflicts", figures.Number(float64(c.conflicts.Load())))},
		failed,
		v.Faults(plain),
		v.Delay(),
		perWrite(used.Size, used.Sized),
		perWrite(used.Spent.Written, used.Known),
		{Value: figures.Millis(used.Spent.CPU) / max(writes, 1), None: !used.Known},
	}
}
