package sqlstore

// batch is what one transaction appends. It belongs to the committer until it is sent
// to the tail.
type batch struct {
	changes  []Change
	waiters  []*pending // of changes
	keys     map[string]struct{}
	bytes    int
	appended Appended
}

// take moves what fits from the queue to b. A second change of a key waits for the
// next batch, and so do those behind it for the same key.
func (c *committer) take(b *batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := c.queue[:0]
	for i, p := range c.queue {
		if i == 4*c.maxCount || !b.hasRoom(c, p) {
			rest = append(rest, c.queue[i:]...)
			break
		}
		if !b.add(p) {
			rest = append(rest, p)
		}
	}
	clear(c.queue[len(rest):])
	c.queue = rest
}

func (b *batch) hasRoom(c *committer, p *pending) bool {
	n := len(b.changes)
	return n == 0 || n < c.maxCount && b.bytes+len(p.change.Value) <= c.maxBytes
}

func (b *batch) add(p *pending) bool {
	if _, ok := b.keys[p.change.Key]; ok {
		return false
	}
	b.keys[p.change.Key] = struct{}{}
	b.changes = append(b.changes, p.change)
	b.waiters = append(b.waiters, p)
	b.bytes += len(p.change.Value) + len(p.change.Key)
	p.taken = true
	return true
}

func (b *batch) reset() {
	clear(b.changes)
	clear(b.waiters)
	clear(b.keys)
	*b = batch{changes: b.changes[:0], waiters: b.waiters[:0], keys: b.keys}
}

func (b *batch) fail(err error) {
	for _, p := range b.waiters {
		p.answer(nil, err)
	}
}

// entry makes the entry of b's i-th change.
func (s *Store) entry(b *batch, i int) *Entry {
	c, r := &b.changes[i], &b.appended.Results[i]
	return &Entry{
		Key:            c.Key,
		Revision:       r.Revision,
		CreateRevision: r.CreateRevision,
		At:             b.appended.At,
		Value:          s.o.Format.Show(c.Value, r.Revision),
		form:           c.form,
	}
}
