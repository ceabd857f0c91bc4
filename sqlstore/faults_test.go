package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/plinth-io/plinth/sqlstore"
)

// faultyLog is a real log with failures in its way.
type faultyLog struct {
	Log
	t      testing.TB
	away   atomic.Bool // the database does not answer
	hangs  atomic.Bool // the database takes connections and does not answer
	shared bool        // other processes may append

	appending atomic.Bool
	probes    atomic.Int64 // empty batches that failed

	mu    sync.Mutex
	fault func(batch []Change) fault
}

type fault int

const (
	works     fault = iota
	lost            // COMMIT fails and nothing is written
	persisted       // COMMIT fails and everything is written
	refused         // nothing is written and it is the batch's fault
)

var errAway = fmt.Errorf("connection refused: %w", ErrUnavailable)

func (l *faultyLog) Exclusive() bool { return !l.shared && l.Log.Exclusive() }

func (l *faultyLog) set(f func([]Change) fault) {
	l.mu.Lock()
	l.fault = f
	l.mu.Unlock()
}

func (l *faultyLog) next(batch []Change) fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault == nil || len(batch) == 0 {
		return works
	}
	return l.fault(batch)
}

// checkBatch checks what a log may rely on.
func (l *faultyLog) checkBatch(batch []Change) {
	keys := map[string]bool{}
	for _, c := range batch {
		if keys[c.Key] {
			l.t.Errorf("a batch has %s twice", c.Key)
		}
		keys[c.Key] = true
	}
	if !l.appending.CompareAndSwap(false, true) {
		l.t.Error("two appends at a time")
	}
}

func (l *faultyLog) Append(ctx context.Context, batch []Change) (Appended, error) {
	l.checkBatch(batch)
	defer l.appending.Store(false)
	if l.away.Load() {
		if len(batch) == 0 {
			l.probes.Add(1)
		}
		return Appended{}, errAway
	}
	if l.hangs.Load() {
		<-ctx.Done()
		return Appended{}, ctx.Err()
	}
	switch l.next(batch) {
	case lost:
		return Appended{}, fmt.Errorf("commit: %w", ErrUnknown)
	case refused:
		return Appended{}, errors.New("packet too large")
	case persisted:
		if _, err := l.Log.Append(ctx, batch); err != nil {
			return Appended{}, err
		}
		return Appended{}, fmt.Errorf("commit: %w", ErrUnknown)
	}
	return l.Log.Append(ctx, batch)
}

func (l *faultyLog) Rows(ctx context.Context, after int64, limit int) ([]Row, error) {
	if l.away.Load() {
		return nil, errAway
	}
	return l.Log.Rows(ctx, after, limit)
}

func (l *faultyLog) Head(ctx context.Context) (Head, error) {
	if l.away.Load() {
		return Head{}, errAway
	}
	if l.hangs.Load() {
		<-ctx.Done()
		return Head{}, ctx.Err()
	}
	return l.Log.Head(ctx)
}

func (l *faultyLog) Steps(ctx context.Context, from, to string, after, through int64, limit int) ([]Step, error) {
	if l.away.Load() {
		return nil, errAway
	}
	return l.Log.Steps(ctx, from, to, after, through, limit)
}

func newFaultyLog(t testing.TB, dsn string) *faultyLog {
	return &faultyLog{Log: openLog(t, dsn), t: t}
}

func newFaultyStore(t *testing.T, o Options) (*Store, *faultyLog) {
	log := newFaultyLog(t, fileDSN(t))
	return openStore(t, log, o), log
}

func always(f fault) func([]Change) fault { return func([]Change) fault { return f } }

func TestUnknownOutcome(t *testing.T) {
	for name, f := range map[string]fault{"lost": lost, "persisted": persisted} {
		t.Run(name, func(t *testing.T) {
			s, log := newFaultyStore(t, Options{})
			w, err := s.Watch(maps, maps, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			create(t, s, maps+"ns/a")
			log.set(always(f))
			_, err = s.Commit(t.Context(), Change{Key: maps + "ns/b", Value: value("b", 0)})
			if !errors.Is(err, ErrUnknown) || s.Healthy() == nil {
				t.Fatalf("commit: %v; healthy: %v", err, s.Healthy())
			}
			log.set(nil)
			// Nothing but a read: it must know what became of the commit.
			if _, err := s.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			if there := s.Get(maps+"ns/b") != nil; there != (f == persisted) {
				t.Errorf("after Sync, b is there: %v", there)
			}
			c := create(t, s, maps+"ns/c")
			if err := s.Healthy(); err != nil {
				t.Errorf("healthy after a commit: %v", err)
			}
			if n := len(poll(t, w, c.Revision)); n != 2+int(f-lost) {
				t.Errorf("%d events", n)
			}
		})
	}
}

// TestUnknownIsReadAtOnce checks that nobody has to ask before what was written becomes
// visible.
func TestUnknownIsReadAtOnce(t *testing.T) {
	s, log := newFaultyStore(t, Options{})
	log.set(always(persisted))
	if _, err := s.Commit(t.Context(), Change{Key: maps + "ns/a", Value: value("a", 0)}); !errors.Is(err, ErrUnknown) {
		t.Fatalf("commit: %v", err)
	}
	if err := s.Wait(t.Context(), 1); err != nil || s.Get(maps+"ns/a") == nil {
		t.Errorf("it is there: %v, %v", s.Get(maps+"ns/a"), err)
	}
}

func TestOneBadChangeAlone(t *testing.T) {
	s, log := newFaultyStore(t, Options{})
	log.set(func(batch []Change) fault {
		for _, c := range batch {
			if strings.HasSuffix(c.Key, "bad") {
				return refused
			}
		}
		return works
	})
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for j := range 4 {
				create(t, s, fmt.Sprintf("%sns/%d-%d", maps, i, j))
			}
		})
		wg.Go(func() {
			if _, err := s.Commit(t.Context(), Change{Key: fmt.Sprintf("%sns/%d-bad", maps, i), Value: value("bad", 0)}); err == nil {
				t.Error("the bad change was accepted")
			}
		})
	}
	wg.Wait()
	if n := s.Stats().Entries[maps]; n != 200 {
		t.Errorf("%d entries, want 200", n)
	}
	if err := s.Healthy(); err != nil {
		t.Errorf("a bad change made the store unhealthy: %v", err)
	}
}

func TestDatabaseAway(t *testing.T) {
	log := newFaultyLog(t, fileDSN(t))
	log.shared = true
	s := openStore(t, log, Options{})
	a := create(t, s, maps+"ns/a")
	log.away.Store(true)
	if _, err := s.Commit(t.Context(), Change{Key: maps + "ns/b", Value: value("b", 0)}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("commit: %v", err)
	}
	if _, err := s.Sync(t.Context()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("sync: %v", err)
	}
	if err := s.Healthy(); !errors.Is(err, ErrUnavailable) {
		t.Errorf("healthy: %v", err)
	}
	if s.Get(a.Key) != a {
		t.Error("reads stopped")
	}
	for log.probes.Load() == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	log.away.Store(false)
	for s.Healthy() != nil { // it finds out by itself
		time.Sleep(10 * time.Millisecond)
	}
	create(t, s, maps+"ns/b")
	if r, err := s.Sync(t.Context()); err != nil || r != s.Revision() {
		t.Errorf("sync: %d, %v", r, err)
	}
}

// TestDatabaseHangs has no caller with a bound of its own. The first transaction that
// hangs is given up before COMMIT, so its outcome is known.
func TestDatabaseHangs(t *testing.T) {
	log := newFaultyLog(t, fileDSN(t))
	log.shared = true
	s := openStore(t, log, Options{QueryTimeout: 500 * time.Millisecond, AppendTimeout: time.Second})
	log.hangs.Store(true)
	b := Change{Key: maps + "ns/b", Value: value("b", 0)}
	_, err := s.Commit(context.Background(), b)
	if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "no answer within") {
		t.Errorf("commit: %v", err)
	}
	if _, err := s.Sync(context.Background()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("sync: %v", err)
	}
	if err := s.Healthy(); !errors.Is(err, ErrUnavailable) {
		t.Errorf("healthy: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if _, err := s.Commit(ctx, b); !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrUnknown) {
		t.Errorf("commit of somebody impatient: %v", err)
	}
	log.hangs.Store(false)
	for s.Healthy() != nil {
		time.Sleep(5 * time.Millisecond)
	}
	if err := commitSoon(s, maps+"ns/c"); err != nil {
		t.Error(err)
	}
}

// TestFaultsUnderLoad makes commits fail in all ways while writers go on. What was
// acknowledged must be there, and watchers see every row of the log once.
func TestFaultsUnderLoad(t *testing.T) {
	s, log := newFaultyStore(t, Options{WindowBytes: 20000, MaxBatch: 8})
	w, err := s.Watch(maps, maps, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r := rand.New(rand.NewPCG(5, 5))
	log.set(func([]Change) fault { return []fault{works, works, works, lost, persisted}[r.IntN(5)] })

	var mu sync.Mutex
	known := map[string]*Entry{} // by key; each is created at most once
	unknown := map[string]bool{}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 100 {
				key := fmt.Sprintf("%sns/%d-%d", maps, i, j)
				e, err := s.Commit(context.Background(), Change{Key: key, Value: value(key, j)})
				mu.Lock()
				switch {
				case err == nil:
					known[key] = e
				case errors.Is(err, ErrUnknown):
					unknown[key] = true
				case !errors.Is(err, ErrUnavailable):
					t.Errorf("commit: %v", err)
				}
				mu.Unlock()
			}
		})
	}
	for range 5 {
		time.Sleep(10 * time.Millisecond)
		log.away.Store(true)
		time.Sleep(5 * time.Millisecond)
		log.away.Store(false)
	}
	wg.Wait()
	log.set(nil)
	if _, err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int64{}
	for _, ev := range poll(t, w, s.Revision()) {
		if seen[ev.Entry.Key] != 0 {
			t.Errorf("%s was seen at %d and at %d", ev.Entry.Key, seen[ev.Entry.Key], ev.Entry.Revision)
		}
		seen[ev.Entry.Key] = ev.Entry.Revision
	}
	for key, e := range known {
		if seen[key] != e.Revision {
			t.Errorf("%s was acknowledged at %d and seen at %d", key, e.Revision, seen[key])
		}
	}
	for key := range seen {
		if known[key] == nil && !unknown[key] {
			t.Errorf("%s was refused and is there", key)
		}
	}
	t.Logf("%d acknowledged, %d unknown, %d there", len(known), len(unknown), len(seen))
}

func TestContextEndsInTheQueue(t *testing.T) {
	s, log := newFaultyStore(t, Options{})
	release, entered := make(chan struct{}), make(chan struct{}, 10)
	log.set(func([]Change) fault { entered <- struct{}{}; <-release; return works })
	first := make(chan error, 1)
	go func() {
		_, err := s.Commit(context.Background(), Change{Key: maps + "ns/a", Value: value("a", 0)})
		first <- err
	}()
	<-entered
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	_, err := s.Commit(ctx, Change{Key: maps + "ns/b", Value: value("b", 0)})
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrUnknown) {
		t.Errorf("withdrawn: %v", err)
	}
	close(release)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	create(t, s, maps+"ns/c")
	if s.Get(maps+"ns/b") != nil {
		t.Error("a withdrawn change was written")
	}
}

func TestContextEndsInTheTransaction(t *testing.T) {
	s, log := newFaultyStore(t, Options{})
	release := make(chan struct{})
	log.set(func([]Change) fault { <-release; return works })
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() {
		_, err := s.Commit(ctx, Change{Key: maps + "ns/a", Value: value("a", 0)})
		result <- err
	}()
	for s.Queued() > 0 || !s.Committing() {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-result; !errors.Is(err, ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("abandoned: %v", err)
	}
	close(release)
	if err := s.Wait(t.Context(), 1); err != nil || s.Get(maps+"ns/a") == nil {
		t.Errorf("the abandoned commit went on: %v", err)
	}
}

func TestCloseFinishesQueuedCommits(t *testing.T) {
	dsn := fileDSN(t)
	log := newFaultyLog(t, dsn)
	s, err := Open(t.Context(), log, Options{MaxBatch: 3})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var keys []string
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			key := fmt.Sprintf("%sns/%d", maps, i)
			_, err := s.Commit(context.Background(), Change{Key: key, Value: value(key, 0)})
			if err == nil {
				mu.Lock()
				keys = append(keys, key)
				mu.Unlock()
			} else if !errors.Is(err, ErrClosed) {
				t.Errorf("commit: %v", err)
			}
		})
	}
	time.Sleep(time.Millisecond)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	s = openStore(t, openLog(t, dsn), Options{})
	for _, key := range keys {
		if s.Get(key) == nil {
			t.Errorf("%s was acknowledged and is gone", key)
		}
	}
}
