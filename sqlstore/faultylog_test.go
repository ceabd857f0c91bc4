package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// faultyLog is a real log with failures in its way.
type faultyLog struct {
	changelog.Log
	t      testing.TB
	away   atomic.Bool  // the database does not answer
	hangs  atomic.Bool  // the database takes connections and does not answer
	shared bool         // other processes may append
	reads  sync.RWMutex // held for reading while Rows runs

	appending atomic.Bool
	probes    atomic.Int64 // empty batches that failed

	mu    sync.Mutex
	fault func(batch []changelog.Change) fault
}

func newFaultyLog(t testing.TB, dsn string) *faultyLog {
	return &faultyLog{Log: openLog(t, dsn), t: t}
}

func newFaultyStore(t *testing.T, o Options) (*Store, *faultyLog) {
	log := newFaultyLog(t, fileDSN(t))
	return openStore(t, log, o), log
}

type fault int

const (
	works     fault = iota
	lost            // COMMIT fails and nothing is written
	persisted       // COMMIT fails and everything is written
	refused         // nothing is written and it is the batch's fault
)

var errAway = fmt.Errorf("connection refused: %w", changelog.ErrUnavailable)

func (l *faultyLog) Exclusive() bool { return !l.shared && l.Log.Exclusive() }

func (l *faultyLog) set(f func([]changelog.Change) fault) {
	l.mu.Lock()
	l.fault = f
	l.mu.Unlock()
}

func (l *faultyLog) next(batch []changelog.Change) fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault == nil || len(batch) == 0 {
		return works
	}
	return l.fault(batch)
}

// checkBatch checks what a log may rely on.
func (l *faultyLog) checkBatch(batch []changelog.Change) {
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

func (l *faultyLog) Append(ctx context.Context, batch []changelog.Change) (changelog.Appended, error) {
	l.checkBatch(batch)
	defer l.appending.Store(false)
	if l.away.Load() {
		if len(batch) == 0 {
			l.probes.Add(1)
		}
		return changelog.Appended{}, errAway
	}
	if l.hangs.Load() {
		<-ctx.Done()
		return changelog.Appended{}, ctx.Err()
	}
	switch l.next(batch) {
	case lost:
		return changelog.Appended{}, fmt.Errorf("commit: %w", changelog.ErrUnknown)
	case refused:
		return changelog.Appended{}, errors.New("packet too large")
	case persisted:
		if _, err := l.Log.Append(ctx, batch); err != nil {
			return changelog.Appended{}, err
		}
		return changelog.Appended{}, fmt.Errorf("commit: %w", changelog.ErrUnknown)
	}
	return l.Log.Append(ctx, batch)
}

func (l *faultyLog) Rows(ctx context.Context, after int64, limit int) ([]changelog.Row, error) {
	l.reads.RLock()
	defer l.reads.RUnlock()
	if l.away.Load() {
		return nil, errAway
	}
	return l.Log.Rows(ctx, after, limit)
}

func (l *faultyLog) Head(ctx context.Context) (changelog.Head, error) {
	if l.away.Load() {
		return changelog.Head{}, errAway
	}
	if l.hangs.Load() {
		<-ctx.Done()
		return changelog.Head{}, ctx.Err()
	}
	return l.Log.Head(ctx)
}

func (l *faultyLog) Time(ctx context.Context, revision int64) (found, at int64, err error) {
	if l.away.Load() {
		return 0, 0, errAway
	}
	return l.Log.Time(ctx, revision)
}

func (l *faultyLog) Steps(ctx context.Context, from, to string, after, through int64, limit int) ([]changelog.Step, error) {
	if l.away.Load() {
		return nil, errAway
	}
	return l.Log.Steps(ctx, from, to, after, through, limit)
}

func (l *faultyLog) Values(ctx context.Context, ids []int64) (map[int64][]byte, error) {
	if l.away.Load() {
		return nil, errAway
	}
	return l.Log.Values(ctx, ids)
}

// cutOff makes the database go away, and returns when no read is going on any more.
func (l *faultyLog) cutOff() {
	l.away.Store(true)
	l.reads.Lock()
	defer l.reads.Unlock()
}

func always(f fault) func([]changelog.Change) fault {
	return func([]changelog.Change) fault { return f }
}
