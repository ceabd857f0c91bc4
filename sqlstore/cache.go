package sqlstore

import (
	"context"
	"fmt"
	"sync"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

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

// add notes that e, which is current, has a value in memory.
func (c *cache) add(e *Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.form.dead || e.form.cached || e.form.held.Load() == nil {
		return
	}
	e.form.cached = true
	c.bytes += cost(e)
	c.ring.push(e)
	c.shrink()
}

// shrink takes values out of memory until the rest is within the limit. mu is held.
func (c *cache) shrink() {
	for c.bytes > c.limit && c.ring.len() > 0 {
		e := c.ring.pop()
		switch {
		case e.form.dead:
			c.dead--
		case e.form.used.Swap(false):
			c.ring.push(e)
		default:
			c.bytes -= cost(e)
			e.form.cached = false
			e.form.held.Store(nil)
		}
	}
}

// drop forgets e, which is not current any more.
func (c *cache) drop(e *Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.form.dead = true
	if !e.form.cached {
		return
	}
	e.form.cached = false
	c.bytes -= cost(e)
	if c.dead++; c.dead > 64 && c.dead > c.ring.len()/2 {
		c.sweep()
	}
}

// sweep takes dead entries out of the ring, which would keep them in memory. mu is held.
func (c *cache) sweep() {
	live := make([]*Entry, 0, c.ring.len()-c.dead)
	for _, e := range c.ring.all() {
		if !e.form.dead {
			live = append(live, e)
		}
	}
	c.ring, c.dead = queue[*Entry]{items: live}, 0
}

// clear forgets all entries.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes, c.ring, c.dead = 0, queue[*Entry]{}, 0
}

// fill gives e a value that was read from the log.
func (c *cache) fill(e *Entry, value []byte) {
	e.form.size.Store(int64(len(value)))
	if e.form.held.CompareAndSwap(nil, &value) {
		c.add(e)
	}
}

// cost is what the value of e takes. It is the same at each call once there is a value.
func cost(e *Entry) int { return e.size() + cacheOverhead }

// Values returns the values of raw keys' entries, in their order: from memory, or from the log
// those that are not there. ErrCompacted if one is in neither.
func (k *Keys) Values(ctx context.Context, entries []*Entry) ([][]byte, error) {
	values := make([][]byte, len(entries))
	var missing []int64
	for i, e := range entries {
		value, ok := e.value()
		if !ok {
			missing = append(missing, e.Revision)
		}
		values[i] = value
	}
	if missing == nil {
		return values, nil
	}
	read, err := k.log.Values(ctx, missing)
	if err != nil {
		return nil, fmt.Errorf("read values: %w", err)
	}
	for i, e := range entries {
		if values[i] != nil {
			continue
		}
		value, ok := read[e.Revision]
		if !ok {
			return nil, fmt.Errorf("read the value of row %d: %w", e.Revision, changelog.ErrCompacted)
		}
		if value == nil {
			value = []byte{}
		}
		values[i] = value
		k.cache.fill(e, value)
	}
	return values, nil
}
