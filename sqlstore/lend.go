package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Old values that are read from the log for one answer are in memory beside the state, and count against its bound
// while they are there: values of the state leave memory for them. Who reads many borrows the room for each part of
// them before he reads it, so that all readers together have no more than lendBytes says.

const (
	// leastLent is what there is to lend at least, and what there is without Options.StateBytes: times 8.
	leastLent = 8 << 20
	// lendPart of the bytes for the state can be lent.
	lendPart = 4
	// lendShare of what there is one reader may have: the others must not wait for one who does not take what he
	// has asked for.
	lendShare = 2
	// lendWait is how long a reader waits for others.
	lendWait = 15 * time.Second
)

// ErrBusy says that others read so much that there is no room for what was to be read.
var ErrBusy = errors.New("too much is being read")

// lender gives out room. Its zero value has none.
type lender struct {
	all int // never changes

	mu      sync.Mutex
	lent    int
	by      map[string]int
	waiting []*borrower // in the order in which they came
}

// borrower waits for room.
type borrower struct {
	who   string
	bytes int
	got   chan struct{} // closed when he has it
}

func lendBytes(stateBytes int) int {
	if stateBytes <= 0 {
		return 8 * leastLent
	}
	return max(stateBytes/lendPart, leastLent)
}

// countLent lets bytes count against the bound of the state until uncount is called.
func (st *state) countLent(bytes int) (uncount func()) {
	v := &st.evictor
	if v.limit == 0 {
		return func() {}
	}
	v.lent.Add(int64(bytes))
	st.mu.RLock()
	v.check()
	st.mu.RUnlock()
	return func() { v.lent.Add(-int64(bytes)) }
}

// fits says whether there is room. mu is held.
func (l *lender) fits(who string, bytes int) bool {
	return l.lent+bytes <= l.all && l.by[who]+bytes <= l.all/lendShare
}

// give notes that who has room. mu is held.
func (l *lender) give(who string, bytes int) {
	if l.by == nil {
		l.by = map[string]int{}
	}
	l.lent += bytes
	l.by[who] += bytes
}

func (l *lender) take(ctx context.Context, who string, bytes int) (int, error) {
	bytes = min(bytes, l.all/lendShare)
	l.mu.Lock()
	if len(l.waiting) == 0 && l.fits(who, bytes) {
		l.give(who, bytes)
		l.mu.Unlock()
		return bytes, nil
	}
	b := &borrower{who, bytes, make(chan struct{})}
	l.waiting = append(l.waiting, b)
	l.serve()
	l.mu.Unlock()
	return bytes, l.wait(ctx, b)
}

func (l *lender) wait(ctx context.Context, b *borrower) error {
	late := time.NewTimer(lendWait)
	defer late.Stop()
	var err error
	select {
	case <-b.got:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-late.C:
		err = fmt.Errorf("wait %v for memory: %w", lendWait, ErrBusy)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, b)
	if i < 0 {
		return nil // he got it at that moment
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	l.serve()
	return err
}

func (l *lender) put(who string, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lent -= bytes
	if l.by[who] -= bytes; l.by[who] == 0 {
		delete(l.by, who)
	}
	l.serve()
}

// serve gives room to those who wait, in their order. Who has his share already lets others pass; nobody passes one
// for whom there is not enough at all. mu is held.
func (l *lender) serve() {
	for i := 0; i < len(l.waiting); {
		b := l.waiting[i]
		switch {
		case l.fits(b.who, b.bytes):
			l.give(b.who, b.bytes)
			close(b.got)
			l.waiting = slices.Delete(l.waiting, i, i+1)
		case l.lent+b.bytes > l.all:
			return
		default:
			i++
		}
	}
}
