package sqlstore

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// Transformer changes values on their way into the log and back: encryption at rest. Its
// methods are called by many goroutines at once and may ask another process for a key.
type Transformer interface {
	// ToStorage returns what the log holds of the value of key.
	ToStorage(ctx context.Context, key string, value []byte) ([]byte, error)
	// FromStorage returns the value of key from what the log holds of it. stale says that
	// ToStorage would store it in another way now.
	FromStorage(ctx context.Context, key string, stored []byte) (value []byte, stale bool, err error)
}

const (
	// readAgainAfter is how long the reading of an unreadable object is not tried again.
	readAgainAfter = 200 * time.Millisecond
	// readAgainWait bounds one more try.
	readAgainWait = 5 * time.Second
	// pageTransform bounds what the values of one page of rows may wait for keys, so that a
	// key service that hangs does not keep the tail. What is not read then is read later.
	pageTransform = 2 * time.Second
	// loadTransform is the same for all pages of a full read.
	loadTransform = 10 * time.Second
)

// Unreadable says that the stored form of one object cannot be transformed.
type Unreadable struct {
	Key      string
	Revision int64
	Err      error // the Transformer's
}

func (u *Unreadable) Error() string {
	return fmt.Sprintf("unable to transform key %q: %v", u.Key, u.Err)
}
func (u *Unreadable) Unwrap() error { return u.Err }

// UnreadableError names the objects of a range that cannot be read.
type UnreadableError struct {
	Objects []*Unreadable
}

func (e *UnreadableError) Error() string {
	if len(e.Objects) == 1 {
		return e.Objects[0].Error()
	}
	return fmt.Sprintf("%d objects cannot be read, among them: %v", len(e.Objects), e.Objects[0])
}

// note adds e if it cannot be read.
func (e *UnreadableError) note(entry *Entry) {
	if f := entry.form; f != nil && f.sealed != nil {
		e.Objects = append(e.Objects, &Unreadable{entry.Key, entry.Revision, f.sealed.err})
	}
}

func (s *Store) tellUnreadable(e *UnreadableError) {
	if len(e.Objects) > 0 {
		s.o.Log.Error("objects in the database cannot be decrypted; all others are served", "objects", len(e.Objects), "first", e.Objects[0].Key, "err", e.Objects[0].Err)
	}
}

// form is how the log holds an entry's value, if not as it is, and what a raw key's entry has
// beside that.
type form struct {
	sealed *sealed // of an unreadable entry, else nil
	away   bool    // the value is only in the log
	tenure         // of a raw key
}

// sealed is what an unreadable entry has in the place of a value.
type sealed struct {
	stored []byte // nil if the value was to be read from the log, which failed
	err    error  // why it is unreadable
	tried  atomic.Int64
}

// transformed is the form of all entries that can be read.
var transformed form

// isTransformed tells the stored form of a value from the value.
func (s *Store) isTransformed(stored []byte) bool {
	return len(stored) > 0 && !s.o.Format.Plain(stored)
}

// hide returns the value to store of what readers see of e.
func (s *Store) hide(e *Entry) []byte {
	if e.Unreadable() != nil {
		return nil
	}
	return s.o.Format.Hide(e.Value, e.Revision)
}

// Unreadable returns nil, or an *Unreadable. An unreadable entry has no Value.
func (e *Entry) Unreadable() error {
	if e.form == nil || e.form.sealed == nil {
		return nil
	}
	return &Unreadable{e.Key, e.Revision, e.form.sealed.err}
}

// HadUnreadable says whether an object could not be read since the Store was opened. It may be
// readable now.
func (s *Store) HadUnreadable() bool { return s.hadUnreadable.Load() }

// seal sets what the log holds of c's value.
func (s *Store) seal(ctx context.Context, c *Change) error {
	if s.o.Transformer == nil || c.stored != nil {
		return nil
	}
	stored, err := s.o.Transformer.ToStorage(ctx, c.Key, c.Value)
	if err != nil {
		return fmt.Errorf("nothing was written: %w", &Unreadable{c.Key, 0, err})
	}
	if s.isTransformed(stored) {
		c.stored, c.form = stored, &transformed
	}
	return nil
}

// StoredValue returns what a Log stores of c.
func (c *Change) StoredValue() []byte {
	if c.stored != nil {
		return c.stored
	}
	return c.Value
}

// open makes the entry of a row from the log.
func (s *Store) open(ctx context.Context, row *Row) *Entry {
	if s.o.Transformer == nil {
		return s.newEntry(row)
	}
	value, _, err := s.o.Transformer.FromStorage(ctx, row.Key, row.Value)
	if err != nil {
		s.hadUnreadable.Store(true)
		f := &sealed{stored: row.Value, err: err}
		f.tried.Store(time.Now().UnixNano())
		return &Entry{Key: row.Key, Revision: row.Revision, CreateRevision: row.CreateRevision, At: row.At, form: &form{sealed: f}}
	}
	plain := *row
	plain.Value = value
	e := s.newEntry(&plain)
	if s.isTransformed(row.Value) {
		e.form = &transformed
	}
	return e
}

// readable returns e, or what can be read now of an entry that could not be read before: a
// key may have come up meanwhile.
func (s *Store) readable(e *Entry) *Entry {
	if e == nil || e.form == nil {
		return e
	}
	if e.isAway() {
		return s.present(e)
	}
	if e.form.sealed == nil || e.form.sealed.stored == nil {
		return e
	}
	f := e.form.sealed
	now, tried := time.Now().UnixNano(), f.tried.Load()
	if now-tried < int64(readAgainAfter) || !f.tried.CompareAndSwap(tried, now) {
		return e
	}
	ctx, cancel := context.WithTimeout(s.ctx, readAgainWait)
	defer cancel()
	again := s.open(ctx, &Row{Revision: e.Revision, Key: e.Key, CreateRevision: e.CreateRevision, At: e.At, Value: f.stored})
	s.state.swap(e, again)
	return again
}

// swap puts again in the place of e, if e is still there.
func (st *state) swap(e, again *Entry) {
	st.mu.Lock()
	defer st.mu.Unlock()
	r := st.resources[st.format.ResourceOf(e.Key)]
	if r == nil {
		return
	}
	if now, _ := r.entries.Get(e.Key); now == e {
		st.swapHeld(r, e, again)
		if !e.isAway() {
			r.epoch++
		}
	}
}

// readableOnly returns a function that calls f with the readable entries, and one that returns
// the error about the others.
func (s *Store) readableOnly(f func(*Entry) bool) (visit func(*Entry) bool, failed func() error) {
	var bad *UnreadableError
	visit = func(e *Entry) bool {
		if e = s.readable(e); e.form == nil || e.form.sealed == nil {
			return f(e)
		}
		if bad == nil {
			bad = &UnreadableError{}
		}
		bad.note(e)
		return true
	}
	return visit, func() error {
		if bad == nil {
			return nil
		}
		return bad
	}
}

// Refresh is Confirm, but for an object that would be stored in another way now: Refresh
// stores it anew.
func (s *Store) Refresh(ctx context.Context, current *Entry) (*Entry, error) {
	stale, err := s.isStale(ctx, current)
	if err != nil {
		return nil, err
	}
	if !stale {
		return s.Confirm(ctx, current)
	}
	return s.Commit(ctx, Change{Key: current.Key, Expect: current.Revision, Value: s.hide(current)})
}

// isStale looks into the log only for a value that was transformed.
func (s *Store) isStale(ctx context.Context, e *Entry) (bool, error) {
	t := s.o.Transformer
	switch {
	case t == nil:
		return false, nil
	case e.form == nil:
		stored, err := t.ToStorage(ctx, e.Key, []byte("{}"))
		if err != nil {
			return false, &Unreadable{e.Key, e.Revision, err}
		}
		return s.isTransformed(stored), nil
	}
	rows, err := s.log.State(ctx, e.Key, after(e.Key), e.Revision, 1)
	if err != nil || len(rows) == 0 || rows[0].Revision != e.Revision {
		return false, nil // Confirm finds out
	}
	_, stale, err := t.FromStorage(ctx, e.Key, rows[0].Value)
	return stale || err != nil, nil
}
