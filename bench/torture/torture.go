package torture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// Options say what Run does.
type Options struct {
	Command  []string      // starts plinth serve; flags come after it
	DSN      string        // a database is made beside it, and dropped at the end
	Replicas int           // plinths on it; 1 for SQLite
	Hosts    []string      // HOST:PORT of the server that each of them uses; empty: that in DSN
	For      time.Duration // how long faults are made
	Clients  int           // that call; half as many watch
	Pause    time.Duration // of a client between two calls, on average; 10 ms
	Seed     uint64        // of calls and faults
	Faults   []string      // out of FaultNames; empty: all that are possible
	History  time.Duration // --history of the plinths; 3 seconds
	Database Database      // that is killed and frozen; nil: none is
	Dir      string        // of what is left behind when something is broken
	Progress io.Writer     // nil: nobody wants to know
}

const (
	roundTime = time.Minute     // of one history
	quietTime = 5 * time.Minute // that a busy machine has to become quiet
)

// run is a Run that is under way.
type run struct {
	o        *Options
	dsn      string
	replicas []*replica
	report   *Report
}

// Run plays rounds until the time is over or a guarantee is broken, which the report says. An error means
// that something else has failed.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	o.History = cmp.Or(o.History, 3*time.Second)
	o.Pause = cmp.Or(o.Pause, 10*time.Millisecond)
	dir, err := measure.MakeDirs(o.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	scratch, err := measure.NewScratch(ctx, o.DSN, dir)
	if err != nil {
		return nil, err
	}
	r := &run{o: &o, dsn: scratch.DSN, report: newReport(&o)}
	defer func() { err = errors.Join(err, scratch.Drop(context.WithoutCancel(ctx))) }()
	defer r.close()
	for i := range o.Replicas {
		replica, err := newReplica(ctx, &o, i, scratch.DSN, dir)
		if err != nil {
			return nil, err
		}
		r.replicas = append(r.replicas, replica)
	}
	begun := time.Now()
	for round := 0; err == nil && time.Since(begun) < o.For && len(r.report.Broken) == 0; round++ {
		err = r.play(ctx, round, min(roundTime, o.For-time.Since(begun)))
	}
	r.report.Took = time.Since(begun)
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	return r.report, err
}

func (r *run) close() {
	for _, replica := range r.replicas {
		replica.close()
	}
}

func (r *run) say(format string, a ...any) {
	if r.o.Progress != nil {
		fmt.Fprintf(r.o.Progress, format+"\n", a...)
	}
}

// play plays a round and checks its history.
func (r *run) play(ctx context.Context, round int, lasts time.Duration) error {
	h := NewHistory(r.o.History)
	h.Seed, h.Round = r.o.Seed, round
	space := fmt.Sprintf("torture-%d-", round)
	all, cancel := context.WithTimeout(ctx, lasts+quietTime)
	defer cancel()
	err := r.playLoad(all, h, space, lasts)
	if err == nil {
		err = r.compareMemory(all, h)
	}
	if err != nil {
		if ctx.Err() == nil { // who wants to know why needs what was told until then
			err = errors.Join(err, r.keep(h, nil))
		}
		return err
	}
	if h.Log, h.Others, err = readLog(all, r.dsn, space); err != nil {
		return err
	}
	begun := time.Now()
	broken := Check(h)
	r.report.add(h, broken)
	r.say("round %d: %d calls, %d events, %d faults, checked in %v: %d broken", round, len(h.Calls), h.events(), len(h.Faults), time.Since(begun).Round(time.Millisecond), len(broken))
	if len(broken) == 0 {
		return nil
	}
	return r.keep(h, broken)
}

// playLoad has clients call and watch through faults, and then come to rest.
func (r *run) playLoad(ctx context.Context, h *History, space string, lasts time.Duration) error {
	revisions := &seen{}
	caller := func(id int) *caller {
		return &caller{client: newClient(id, h.Seed+uint64(h.Round), h, r.replicas), seen: revisions, space: space, pause: r.o.Pause, knows: map[string]Item{}}
	}
	last := caller(0)
	defer last.close()
	if err := last.makeNamespaces(ctx); err != nil {
		return err
	}
	stop, end := context.WithCancel(ctx)
	defer end()
	watching, endWatches := context.WithCancel(ctx)
	var calls, watches sync.WaitGroup
	defer watches.Wait()
	defer calls.Wait()
	defer endWatches()
	var targets []*atomic.Int64
	for i, prefix := range r.ranges(space) {
		w := &watcher{caller: caller(1000 + i), watch: &Watch{Name: fmt.Sprintf("%d of %s", i, prefix), Prefix: prefix}, target: new(atomic.Int64)}
		targets = append(targets, w.target)
		h.addWatch(w.watch)
		watches.Go(func() { defer w.close(); w.follow(watching) })
	}
	for i := range r.o.Clients {
		c := caller(1 + i)
		calls.Go(func() { defer c.close(); c.play(stop, ctx) })
	}
	err := r.fail(ctx, h, time.Now().Add(lasts))
	end()
	calls.Wait()
	if err != nil {
		return err
	}
	ends, err := last.finish(ctx)
	if err != nil {
		return err
	}
	for i, prefix := range r.ranges(space) {
		targets[i].Store(ends[prefix])
	}
	watches.Wait()
	return ctx.Err()
}

// ranges returns what watches follow, one for each.
func (r *run) ranges(space string) (prefixes []string) {
	names := namespaces(space)
	for i := range max(2, r.o.Clients/2) {
		prefixes = append(prefixes, []string{space, names[0] + "/", names[1] + "/"}[i%3])
	}
	return prefixes
}

// makeNamespaces makes those of the round.
func (c *caller) makeNamespaces(ctx context.Context) error {
	for _, name := range namespaces(c.space) {
		call := &Call{ID: c.nextID()}
		for end := time.Now().Add(quietTime / 2); !call.OK() && call.Status != 409; c.move() {
			c.send(ctx, call, request{"POST", "/api/v1/namespaces", "application/json", fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name)})
			if time.Now().After(end) || ctx.Err() != nil {
				return fmt.Errorf("make namespace %s: %d %s", name, call.Status, call.Error)
			}
		}
	}
	return nil
}

// finish writes the last object of each namespace, and returns where watches end.
func (c *caller) finish(ctx context.Context) (ends map[string]int64, err error) {
	ends = map[string]int64{}
	for _, name := range namespaces(c.space) {
		call := c.apply(ctx, name+"/end")
		for end := time.Now().Add(quietTime / 2); !call.OK(); call = c.apply(ctx, name+"/end") {
			if time.Now().After(end) || ctx.Err() != nil {
				return nil, fmt.Errorf("no write succeeds after the faults: %v: %s", call, call.Error)
			}
			c.move()
			_ = sleep.For(ctx, 100*time.Millisecond)
		}
		ends[name+"/"] = call.Revision
		ends[c.space] = max(ends[c.space], call.Revision)
	}
	return ends, nil
}

// compareMemory asks each replica for its digest, at the revision of the database's.
func (r *run) compareMemory(ctx context.Context, h *History) error {
	for _, replica := range r.replicas {
		for {
			own, err := replica.digest(ctx)
			if err != nil {
				r.say("replica %d: digest: %v", replica.number, err)
			}
			d, err2 := digestOf(ctx, r.dsn)
			if err == nil && err2 == nil && own.Revision == d.Revision {
				d.Of += fmt.Sprintf(" (replica %d)", replica.number)
				if own.Sum != d.Sum || len(h.Digests) == 0 {
					h.Digests = append(h.Digests, d, own)
				}
				break
			}
			if ctx.Err() != nil {
				return fmt.Errorf("replica %d and the database do not come to one revision: %+v and %+v: %w", replica.number, own, d, errors.Join(err, err2))
			}
			_ = sleep.For(ctx, 100*time.Millisecond)
		}
	}
	return nil
}

// keep saves what is broken.
func (r *run) keep(h *History, broken []Broken) error {
	name := fmt.Sprintf("%s-seed-%d-round-%d", dialects.Scheme(r.dsn), h.Seed, h.Round)
	files, err := save(h, broken, filepath.Join(r.o.Dir, strings.ReplaceAll(name, "/", "-")))
	r.report.Files = append(r.report.Files, files...)
	for _, replica := range r.replicas {
		text, _ := os.ReadFile(filepath.Join(replica.dir, "log"))
		file := filepath.Join(r.o.Dir, fmt.Sprintf("%s-replica-%d.log", name, replica.number))
		err = errors.Join(err, os.WriteFile(file, text, 0o644))
		r.report.Files = append(r.report.Files, file)
	}
	return err
}
