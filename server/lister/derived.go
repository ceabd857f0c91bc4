package lister

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Derived keeps what a reader derives from the objects of a resource, such as an index, in line
// with the store. There is no goroutine: a reader who finds that objects have changed brings
// the derived data up to date before it reads. So a reader sees every change that this process
// has acknowledged or heard of, and a server nobody asks derives nothing.
//
//	d.RLock()
//	defer d.RUnlock()
//	… read the derived data …
type Derived struct {
	store    *sqlstore.Store
	resource string
	reset    func()
	apply    func(*sqlstore.Event)

	updating sync.Mutex      // held by the reader that brings the data up to date
	leftOut  map[string]bool // keys of objects that could not be read; guarded by updating
	mu       sync.RWMutex    // guards the derived data
	through  atomic.Int64    // revision of the derived data
	again    atomic.Int64    // when to read what was left out again, in Unix nanoseconds; 0: never
}

// Objects that could not be read are tried again: the keys that encrypt them may be back.
const (
	retryPause = time.Second      // from one try to the next, if that takes no time
	retryShare = 100              // the pause is so many times as long as the try took,
	retryMost  = 30 * time.Second // but no longer than this
	retryTime  = time.Second      // after it a try leaves the other objects to the next one
)

// NewDerived returns a Derived of the objects whose keys begin with resource. reset empties the
// derived data, apply puts a change into it; both are called with the data locked.
func NewDerived(store *sqlstore.Store, resource string, reset func(), apply func(*sqlstore.Event)) *Derived {
	d := &Derived{store: store, resource: resource, reset: reset, apply: apply, leftOut: map[string]bool{}}
	d.through.Store(-1)
	return d
}

// RLock brings the derived data up to date and locks them for reading.
func (d *Derived) RLock() {
	if d.behind() {
		d.catchUp()
	} else if again := d.again.Load(); again != 0 && time.Now().UnixNano() > again && d.updating.TryLock() {
		d.takeIn()
		d.updating.Unlock()
	}
	d.mu.RLock()
}

// RUnlock ends a reader's lock.
func (d *Derived) RUnlock() { d.mu.RUnlock() }

// behind tells whether objects have changed since the data were derived.
func (d *Derived) behind() bool { return d.store.ChangedAt(d.resource) > d.through.Load() }

// catchUp applies the changes since the last time, or begins anew if the store has forgotten some of
// them.
func (d *Derived) catchUp() {
	d.updating.Lock()
	defer d.updating.Unlock()
	if !d.behind() {
		return
	}
	events, through, complete := d.store.Since(d.resource, d.through.Load())
	if !complete {
		d.beginAnew()
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, ev := range events {
		d.note(ev)
		d.apply(ev)
	}
	d.through.Store(through)
}

// note notes whether the object of a change is left out after it.
func (d *Derived) note(ev *sqlstore.Event) {
	if ev.Type == sqlstore.Delete || ev.Entry.Unreadable() == nil {
		delete(d.leftOut, ev.Entry.Key)
		return
	}
	d.leftOut[ev.Entry.Key] = true
	if d.again.Load() == 0 {
		d.tryAgain(0)
	}
}

// tryAgain sets when to read again what is left out, after a try that took some time.
func (d *Derived) tryAgain(took time.Duration) {
	if len(d.leftOut) == 0 {
		d.again.Store(0)
		return
	}
	pause := min(max(retryPause, retryShare*took), retryMost)
	d.again.Store(time.Now().Add(pause).UnixNano())
}

// takeIn reads the objects that were left out again, and no others. The data are not locked
// meanwhile: to decrypt an object may take time.
func (d *Derived) takeIn() {
	begun := time.Now()
	var found []*sqlstore.Entry
	for key := range d.leftOut {
		e := d.store.Get(key)
		if e == nil || e.Unreadable() == nil {
			delete(d.leftOut, key)
		}
		if e != nil && e.Unreadable() == nil {
			found = append(found, e)
		}
		if time.Since(begun) > retryTime {
			break
		}
	}
	d.tryAgain(time.Since(begun))
	if len(found) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range found {
		d.apply(&sqlstore.Event{Type: sqlstore.Put, Entry: e})
	}
}

// beginAnew derives the data from the present objects. Those that cannot be read are left out. The
// data stay locked while they are written only.
func (d *Derived) beginAnew() {
	begun := time.Now()
	view := d.store.Current(d.resource)
	from, to := changelog.RangeOf(d.resource)
	var all []*sqlstore.Entry
	// In memory: the only error is about objects that cannot be read.
	err := view.Scan(context.Background(), from, to, func(e *sqlstore.Entry) bool {
		all = append(all, e)
		return true
	})
	clear(d.leftOut)
	if unreadable := (*sqlstore.UnreadableError)(nil); errors.As(err, &unreadable) {
		for _, u := range unreadable.Objects {
			d.leftOut[u.Key] = true
		}
	}
	d.tryAgain(time.Since(begun))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reset()
	for _, e := range all {
		d.apply(&sqlstore.Event{Type: sqlstore.Put, Entry: e})
	}
	d.through.Store(view.Revision())
}
