package sqlstore

import (
	"time"

	"github.com/plinth-io/plinth/sqlstore/pages"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

const (
	retryFirst = 50 * time.Millisecond
	retryMost  = 2 * time.Second
	ownFirst   = 5 * time.Millisecond
)

// tail follows the log in order and is the only writer of the state. Batches of this
// process come to it directly; Appended.Head says whether something came between, and
// then it reads the log, as it does for changes of other processes.
type tail struct {
	*shared
	state    *state
	values   *values
	hints    *hints
	pipe     *pipe
	lag      *lag
	witness  *witness
	health   *health
	loader   *loader
	setBacks *setBacks
	others   *others
	face     face

	done chan struct{} // closed when the last batch is applied

	// owned by the tail's goroutine
	page    pages.Pager
	updates []update
	retry   time.Duration
}

func (t *tail) run() {
	defer close(t.done)
	var again <-chan time.Time
	for {
		select {
		case b, ok := <-t.pipe.appended:
			if !ok {
				return
			}
			t.applyBatch(b)
			continue
		case <-t.hints.wake:
			t.awaitOwn()
		case <-again:
		}
		again = t.follow()
	}
}

// awaitOwn lets a batch of this process arrive first if a hint may be about that batch:
// databases send a process hints of its own commits, too, and often before COMMIT returns.
func (t *tail) awaitOwn() {
	if t.state.applied.Load() >= t.hints.hint.Load() || !t.pipe.inFlight() {
		return
	}
	late := time.NewTimer(ownFirst)
	defer late.Stop()
	select {
	case b, ok := <-t.pipe.appended:
		if ok {
			t.applyBatch(b)
		}
	case <-late.C:
	}
}

// follow reads what other processes appended. It returns when to try again if that failed.
func (t *tail) follow() <-chan time.Time {
	hint := t.hints.hint.Load()
	if look := t.hints.look.Swap(false); !look && t.state.applied.Load() >= hint {
		return nil // a hint of a batch that came directly
	}
	err := t.catchUp(hint)
	t.health.read(err)
	if err == nil {
		t.retry = 0
		return nil
	}
	t.hints.look.Store(true)
	return time.After(t.backOff())
}

func (t *tail) backOff() time.Duration {
	t.retry = min(max(2*t.retry, retryFirst), retryMost)
	return t.retry
}

// applyBatch is step 6 of a commit: the face applies b and answers its callers. Then b can be used again.
func (t *tail) applyBatch(b *batch) {
	if t.face.apply(b) {
		put(t.others.wrote)
	}
	b.reset()
	if b.keys != nil {
		t.pipe.free <- b
	}
}

// reach reads the log until revision is applied, however long the database is away;
// false if the Store gives up at Close.
func (t *tail) reach(revision int64) bool {
	for t.state.applied.Load() < revision {
		before := t.state.applied.Load()
		err := t.catchUp(revision)
		t.health.read(err)
		if err != nil || t.state.applied.Load() == before {
			_ = sleep.For(t.ctx, t.backOff())
		}
		if t.ctx.Err() != nil {
			return false
		}
	}
	t.retry = 0
	return true
}
