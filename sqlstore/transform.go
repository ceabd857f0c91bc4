package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Transformer changes values on their way into the log and back: encryption at rest. Its
// methods are called by many goroutines at once and may ask another process for a key.
type Transformer interface {
	// ToStorage returns what the log holds of the value of key.
	ToStorage(ctx context.Context, key string, value []byte) ([]byte, error)
	// FromStorage returns the value of key from what the log holds of it. stale says that
	// ToStorage would store it in another way now. An error that wraps ErrUndecodable will never be another.
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

// Unreadable says that the stored form of one object cannot be transformed, or that it is damaged.
type Unreadable struct {
	Key      string
	Revision int64
	Err      error // the Transformer's, or one that wraps ErrUndecodable
}

func (u *Unreadable) Error() string {
	if u.Damaged() {
		return fmt.Sprintf("unable to decode key %q: %v", u.Key, u.Err)
	}
	return fmt.Sprintf("unable to transform key %q: %v", u.Key, u.Err)
}
func (u *Unreadable) Unwrap() error { return u.Err }

// Damaged tells an object that nobody can read any more from one whose key may come back.
func (u *Unreadable) Damaged() bool { return errors.Is(u.Err, ErrUndecodable) }

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

// tellUnreadable logs what a full read has found.
func (v *values) tellUnreadable(e *UnreadableError) {
	var lost []*Unreadable
	damaged := 0
	for _, u := range e.Objects {
		if !u.Damaged() {
			lost = append(lost, u)
		} else if damaged++; damaged <= mostTold {
			v.tellDamaged(u)
		}
	}
	if damaged > mostTold {
		v.o.Log.Error("more objects in the database are damaged: plinth verify names all", "objects", damaged)
	}
	if len(lost) > 0 {
		v.o.Log.Error("objects in the database cannot be decrypted; all others are served", "objects", len(lost), "first", lost[0].Key, "err", lost[0].Err)
	}
}

// mostTold is how many damaged objects are logged of one read.
const mostTold = 20

func (v *values) tellDamaged(u *Unreadable) {
	v.o.Log.Error("an object in the database is damaged and cannot be read", "key", u.Key, "revision", u.Revision, "err", u.Err)
}

// tellUpdates logs which of the rows that were applied are damaged.
func (v *values) tellUpdates(updates []update) {
	var bad []*Entry
	for i := range updates {
		if u := &updates[i]; !u.deleted && u.entry.isDamaged() {
			bad = append(bad, u.entry)
		}
	}
	v.tellOf(bad)
}

// tellOf logs which of entries, that are in the state now, are damaged.
func (v *values) tellOf(entries []*Entry) {
	told := 0
	for _, e := range entries {
		if e.isDamaged() && told < mostTold {
			told++
			v.tellDamaged(&Unreadable{e.Key, e.Revision, e.form.sealed.err})
		}
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
	stored  []byte // nil if the value was to be read from the log, which failed
	err     error  // why it is unreadable
	damaged bool   // for ever
	tried   atomic.Int64
}

// isSealed says that e is unreadable.
func (e *Entry) isSealed() bool { return e.form != nil && e.form.sealed != nil }

// isDamaged says that e is unreadable and stays so.
func (e *Entry) isDamaged() bool { return e.isSealed() && e.form.sealed.damaged }

// transformed is the form of all entries that can be read.
var transformed form

// isTransformed tells the stored form of a value from the value.
func (v *values) isTransformed(stored []byte) bool {
	return len(stored) > 0 && !v.o.Format.Plain(stored)
}

// hide returns the value to store of what readers see of e.
func (v *values) hide(e *Entry) []byte {
	if e.Unreadable() != nil {
		return nil
	}
	return v.o.Format.Hide(e.Value, e.Revision)
}

// Unreadable returns nil, or an *Unreadable. An unreadable entry has no Value.
func (e *Entry) Unreadable() error {
	if e.form == nil || e.form.sealed == nil {
		return nil
	}
	return &Unreadable{e.Key, e.Revision, e.form.sealed.err}
}

// Unreadable returns the objects whose keys begin with prefix, all of one resource, that cannot be read; nil if all
// can. Those that could not be decrypted are tried again. A value that has left memory counts as readable
// until it is read. Where nothing is unreadable, this costs no lock.
func (s *Store) Unreadable(prefix string) *UnreadableError {
	var bad UnreadableError
	for _, e := range s.state.sealedUnder(s.state.format.ResourceOf(prefix), prefix) {
		if e = s.values.readable(e); e != nil {
			bad.note(e)
		}
	}
	if bad.Objects == nil {
		return nil
	}
	return &bad
}

// Damaged returns how many objects are damaged, as far as this process has read them since they were. It is at least 1
// while the database has answered of late that it is damaged.
func (s *Store) Damaged() int {
	damaged := int(s.state.damaged.Load())
	if s.health.saysDamaged() {
		return max(damaged, 1)
	}
	return damaged
}

// seal sets what the log holds of c's value.
func (v *values) seal(ctx context.Context, c *Change) error {
	if v.o.Transformer == nil || c.stored != nil {
		return nil
	}
	stored, err := v.o.Transformer.ToStorage(ctx, c.Key, c.Value)
	if err != nil {
		return fmt.Errorf("nothing was written: %w", &Unreadable{c.Key, 0, err})
	}
	if v.isTransformed(stored) {
		c.stored, c.form = stored, &transformed
	}
	return nil
}

// open makes the entry of a row from the log.
func (v *values) open(ctx context.Context, row *changelog.Row) *Entry {
	if v.o.Transformer == nil {
		return v.checked(row, row)
	}
	value, _, err := v.o.Transformer.FromStorage(ctx, row.Key, row.Value)
	if err != nil {
		f := &sealed{stored: row.Value, err: err, damaged: errors.Is(err, ErrUndecodable)}
		f.tried.Store(time.Now().UnixNano())
		return sealedEntry(row, f)
	}
	plain := *row
	plain.Value = value
	e := v.checked(row, &plain)
	if e.form == nil && v.isTransformed(row.Value) {
		e.form = &transformed
	}
	return e
}

func sealedEntry(row *changelog.Row, f *sealed) *Entry {
	return &Entry{Key: row.Key, Revision: row.Revision, CreateRevision: row.CreateRevision, At: row.At, form: &form{sealed: f}}
}

// checked makes the entry of a row, which has its value as readers see it in plain.
func (v *values) checked(row, plain *changelog.Row) *Entry {
	if v.o.Check == nil {
		return v.newEntry(plain)
	}
	if why := v.o.Check(plain.Key, plain.Value); why != nil {
		return sealedEntry(row, &sealed{stored: row.Value, damaged: true, err: fmt.Errorf("%w: %w", ErrUndecodable, why)})
	}
	return v.newEntry(plain)
}

// readable returns e, or what can be read now of an entry that could not be read before: a
// key may have come up meanwhile.
func (v *values) readable(e *Entry) *Entry {
	if e == nil || e.form == nil {
		return e
	}
	if e.isAway() {
		return v.present(e)
	}
	f := e.form.sealed
	if f == nil || f.stored == nil || f.damaged {
		return e
	}
	now, tried := time.Now().UnixNano(), f.tried.Load()
	if now-tried < int64(readAgainAfter) || !f.tried.CompareAndSwap(tried, now) {
		return e
	}
	ctx, cancel := context.WithTimeout(v.ctx, readAgainWait)
	defer cancel()
	again := v.open(ctx, &changelog.Row{Revision: e.Revision, Key: e.Key, CreateRevision: e.CreateRevision, At: e.At, Value: f.stored})
	v.swap(e, again)
	return again
}

// swap puts again in the place of e, if e is still there.
func (v *values) swap(e, again *Entry) {
	if v.state.swap(e, again) && again.isDamaged() {
		v.tellOf([]*Entry{again})
	}
}

func (st *state) swap(e, again *Entry) (done bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	r := st.resources[st.format.ResourceOf(e.Key)]
	if r == nil {
		return false
	}
	if now, _ := r.entries.Get(e.Key); now != e {
		return false
	}
	st.swapHeld(r, e, again)
	if !e.isAway() {
		r.epoch++
	}
	return true
}

// sealing is the part of a resource that knows its unreadable entries. Guarded by state.mu.
type sealing struct {
	sealed map[string]*Entry // by key; nil: there are none
}

// seal notes that now is in the place of before in r; either may be nil.
func (st *state) seal(r *resource, before, now *Entry) {
	if before != nil && before.isSealed() {
		st.count(before, -1)
		delete(r.sealed, before.Key)
	}
	if now != nil && now.isSealed() {
		st.count(now, 1)
		if r.sealed == nil {
			r.sealed = map[string]*Entry{}
		}
		r.sealed[now.Key] = now
	}
}

func (st *state) count(e *Entry, n int64) {
	st.unreadable.Add(n)
	if e.isDamaged() {
		st.damaged.Add(n)
	}
}

// sealAll notes which entries are unreadable in a state that was read anew. mu is held.
func (st *state) sealAll(keys []*Unreadable) {
	st.unreadable.Store(0)
	st.damaged.Store(0)
	for _, r := range st.resources {
		r.sealed = nil
	}
	for _, u := range keys {
		if r := st.resources[st.format.ResourceOf(u.Key)]; r != nil {
			e, _ := r.entries.Get(u.Key)
			st.seal(r, nil, e)
		}
	}
}

// sealedUnder returns the unreadable entries of a resource whose keys begin with prefix, in order.
func (st *state) sealedUnder(resource, prefix string) (found []*Entry) {
	if st.unreadable.Load() == 0 {
		return nil
	}
	st.mu.RLock()
	if r := st.resources[resource]; r != nil {
		for key, e := range r.sealed {
			if strings.HasPrefix(key, prefix) {
				found = append(found, e)
			}
		}
	}
	st.mu.RUnlock()
	slices.SortFunc(found, func(a, b *Entry) int { return strings.Compare(a.Key, b.Key) })
	return found
}

// readableOnly returns a function that calls f with the readable entries, and one that returns
// the error about the others.
func (v *values) readableOnly(f func(*Entry) bool) (visit func(*Entry) bool, failed func() error) {
	var bad *UnreadableError
	visit = func(e *Entry) bool {
		if e = v.readable(e); e.form == nil || e.form.sealed == nil {
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
	stale, err := s.Outdated(ctx, current)
	if err != nil {
		return nil, err
	}
	if !stale {
		return s.Confirm(ctx, current)
	}
	return s.Commit(ctx, Change{Key: current.Key, Expect: current.Revision, Value: s.values.hide(current)})
}

// Outdated tells whether Refresh would store e anew. It looks into the log only for a value that was transformed.
func (s *Store) Outdated(ctx context.Context, e *Entry) (bool, error) {
	t := s.o.Transformer
	switch {
	case t == nil:
		return false, nil
	case e.form == nil:
		stored, err := t.ToStorage(ctx, e.Key, []byte("{}"))
		if err != nil {
			return false, &Unreadable{e.Key, e.Revision, err}
		}
		return s.values.isTransformed(stored), nil
	}
	rows, err := s.log.State(ctx, e.Key, changelog.After(e.Key), e.Revision, 1)
	if err != nil || len(rows) == 0 || rows[0].Revision != e.Revision {
		return false, nil // Confirm finds out
	}
	_, stale, err := t.FromStorage(ctx, e.Key, rows[0].Value)
	return stale || err != nil, nil
}
