package sqlstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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

// unreadable is Store.Unreadable.
func (v *values) unreadable(prefix string) *UnreadableError {
	var bad UnreadableError
	for _, e := range v.state.sealedUnder(v.state.format.ResourceOf(prefix), prefix) {
		if e = v.readable(e); e != nil {
			bad.note(e)
		}
	}
	if bad.Objects == nil {
		return nil
	}
	return &bad
}

// Unreadable returns nil, or an *Unreadable. An unreadable entry has no Value.
func (e *Entry) Unreadable() error {
	if e.form == nil || e.form.sealed == nil {
		return nil
	}
	return &Unreadable{e.Key, e.Revision, e.form.sealed.err}
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

// sealing is the part of a resource that knows its unreadable entries. Guarded by state.mu.
type sealing struct {
	sealed map[string]*Entry // by key; nil: there are none
}

// seal notes that now is in the place of before in r; either may be nil.
func (st *state) seal(r *resource, before, now *Entry) {
	if before != nil && before.isSealed() {
		st.countSealed(before, -1)
		delete(r.sealed, before.Key)
	}
	if now != nil && now.isSealed() {
		st.countSealed(now, 1)
		if r.sealed == nil {
			r.sealed = map[string]*Entry{}
		}
		r.sealed[now.Key] = now
	}
}

func (st *state) countSealed(e *Entry, n int64) {
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
