package sqlstore

import (
	"sync"
	"sync/atomic"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// tenure is what the entry of a raw key has beside what all entries have. Its value may leave
// memory, unlike that of an object, and is not in Entry.Value.
type tenure struct {
	version, lease int64
	held           atomic.Pointer[[]byte] // the value, nil while it is only in the log
	used           atomic.Bool            // since the cache looked last
	dead           bool                   // another row has taken its place; guarded by cache.mu
	cached         bool                   // counted by the cache; guarded by cache.mu
}

// tenure returns that of e, nil for an object.
func (e *Entry) tenure() *tenure {
	if e.form == nil {
		return nil
	}
	return e.form.tenure
}

// Version returns how often a raw key was put since it was created.
func (e *Entry) Version() int64 {
	if t := e.tenure(); t != nil {
		return t.version
	}
	return 0
}

// Lease returns the lease that a raw key is attached to, 0 if there is none.
func (e *Entry) Lease() int64 {
	if t := e.tenure(); t != nil {
		return t.lease
	}
	return 0
}

// ValueBytes returns how many bytes the value has, if that is known: of a raw key, once it was read, or written here.
func (e *Entry) ValueBytes() (n int, known bool) {
	n = e.size()
	return n, n > 0
}

// rawEntry makes the entry of a raw key. A row without a value is one whose value is only in the log.
func rawEntry(row *changelog.Row) *Entry {
	made := &struct {
		Entry
		form
		tenure
	}{
		Entry:  Entry{Key: row.Key, Revision: row.Revision, CreateRevision: row.CreateRevision, At: row.At},
		tenure: tenure{version: row.Version, lease: row.Lease},
	}
	made.Entry.form, made.form.tenure = &made.form, &made.tenure
	if value := row.Value; value != nil {
		made.form.size.Store(int64(len(value)))
		made.held.Store(&value)
	}
	return &made.Entry
}

// value returns the value of a raw key if it is in memory.
func (e *Entry) value() (value []byte, ok bool) {
	t := e.form.tenure
	held := t.held.Load()
	if held == nil {
		return nil, false
	}
	if !t.used.Load() {
		t.used.Store(true)
	}
	return *held, true
}

// cacheOverhead is what a value in memory costs beside its bytes.
const cacheOverhead = 64

// cache bounds the values of raw keys in memory. It goes round the entries that have one, as
// the hand of a clock does, and takes the value from those that nobody has asked for since the
// last round. Only current entries are in it: what an old entry holds goes with the window and
// the snapshots, which have bounds of their own.
type cache struct {
	limit int

	mu    sync.Mutex
	bytes int
	ring  queue[*Entry]
	dead  int // entries of the ring that are not current any more
}

// change notes that now is in the place of before; either may be nil. It passes over objects.
func (c *cache) change(before, now *Entry) {
	if before != nil {
		c.drop(before)
	}
	if now != nil {
		c.add(now)
	}
}

// add notes that e, which is current, may have a value in memory.
func (c *cache) add(e *Entry) {
	t := e.tenure()
	if t == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.dead || t.cached || t.held.Load() == nil {
		return
	}
	t.cached = true
	c.bytes += cost(e)
	c.ring.push(e)
	c.shrink()
}

// shrink takes values out of memory until the rest is within the limit. mu is held.
func (c *cache) shrink() {
	for c.bytes > c.limit && c.ring.len() > 0 {
		e := c.ring.pop()
		t := e.form.tenure
		switch {
		case t.dead:
			c.dead--
		case t.used.Swap(false):
			c.ring.push(e)
		default:
			c.bytes -= cost(e)
			t.cached = false
			t.held.Store(nil)
		}
	}
}

// drop forgets e, which is not current any more.
func (c *cache) drop(e *Entry) {
	t := e.tenure()
	if t == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.dead = true
	if !t.cached {
		return
	}
	t.cached = false
	c.bytes -= cost(e)
	if c.dead++; c.dead > 64 && c.dead > c.ring.len()/2 {
		c.sweep()
	}
}

// sweep takes dead entries out of the ring, which would keep them in memory. mu is held.
func (c *cache) sweep() {
	live := make([]*Entry, 0, c.ring.len()-c.dead)
	for _, e := range c.ring.all() {
		if !e.form.tenure.dead {
			live = append(live, e)
		}
	}
	c.ring, c.dead = queue[*Entry]{items: live}, 0
}

// clear forgets all entries.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.ring.all() {
		e.form.tenure.cached = false
	}
	c.bytes, c.ring, c.dead = 0, queue[*Entry]{}, 0
}

// fill gives e a value that was read from the log. It passes over objects.
func (c *cache) fill(e *Entry, value []byte) {
	t := e.tenure()
	if t == nil || value == nil {
		return
	}
	e.form.size.Store(int64(len(value)))
	if t.held.CompareAndSwap(nil, &value) {
		c.add(e)
	}
}

// cost is what the value of e takes. It is the same at each call once there is a value.
func cost(e *Entry) int { return e.size() + cacheOverhead }

// leaseKeys are the raw keys that are attached to each lease. It belongs to state and is guarded
// by its mutex.
type leaseKeys map[int64]map[string]struct{}

// change notes that now is in the place of before; either may be nil.
func (l leaseKeys) change(before, now *Entry) {
	if before != nil && before.Lease() != 0 {
		keys := l[before.Lease()]
		if delete(keys, before.Key); len(keys) == 0 {
			delete(l, before.Lease())
		}
	}
	if now != nil && now.Lease() != 0 {
		if l[now.Lease()] == nil {
			l[now.Lease()] = map[string]struct{}{}
		}
		l[now.Lease()][now.Key] = struct{}{}
	}
}
