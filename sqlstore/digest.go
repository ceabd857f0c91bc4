package sqlstore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Digest is of all objects in force at a revision: of their keys, and of their values with the revisions
// in them. It does not depend on the order in which objects are added, so that memory and database can
// each be read as suits them.
type Digest struct {
	Revision   int64
	Objects    int64
	Sum        [16]byte
	Unreadable int64 // objects that could not be decrypted; Sum lacks them
}

// Text is the sum in hexadecimal digits.
func (d *Digest) Text() string { return hex.EncodeToString(d.Sum[:]) }

// add adds an object. value has the revision in it.
func (d *Digest) add(key string, value []byte) {
	h := sha256.New()
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(key)))
	h.Write(length[:])
	h.Write([]byte(key))
	h.Write(value)
	sum := h.Sum(nil)
	for at := 0; at < len(d.Sum); at += 8 {
		both := binary.BigEndian.Uint64(d.Sum[at:]) + binary.BigEndian.Uint64(sum[at:])
		binary.BigEndian.PutUint64(d.Sum[at:], both)
	}
	d.Objects++
}

// Digest returns that of what reads see now. It works on a copy that takes constant time to make, and
// costs about a second of one processor for each gigabyte of values. Those that are away it reads from the log.
func (s *Store) Digest(ctx context.Context) (Digest, error) {
	maps, revision := s.state.copyAll()
	return s.values.digest(ctx, maps, nil, revision)
}

// DigestAt returns the digest of memory as it was at a revision, for which it waits. ErrCompacted if the
// changes since are not in memory any more.
func (s *Store) DigestAt(ctx context.Context, revision int64) (Digest, error) {
	if err := s.state.wait(ctx, revision); err != nil {
		return Digest{}, fmt.Errorf("digest: %w", err)
	}
	maps, before, ok := s.state.copyBack(revision)
	if !ok {
		return Digest{}, fmt.Errorf("digest of memory at %d: %w", revision, changelog.ErrCompacted)
	}
	return s.values.digest(ctx, maps, before, revision)
}

// digest adds the entries of maps. Keys in before have those entries in their place, nil for none.
func (v *values) digest(ctx context.Context, maps []*entryMap, before map[string]*Entry, revision int64) (Digest, error) {
	d := Digest{Revision: revision}
	add := func(key string, e *Entry) {
		if e = v.readable(e); e.Unreadable() != nil {
			d.Unreadable++
		} else {
			d.add(key, e.Value)
		}
	}
	for _, m := range maps {
		for e, err := range v.fetched(ctx, unchanged(m, before)) {
			if err != nil {
				return d, fmt.Errorf("digest: %w", err)
			}
			add(e.Key, e)
		}
	}
	for key, e := range before {
		if e != nil {
			add(key, e)
		}
	}
	return d, nil
}

// unchanged yields the entries of m whose keys are not in before.
func unchanged(m *entryMap, before map[string]*Entry) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		m.Scan(func(key string, e *Entry) bool {
			_, changed := before[key]
			return changed || yield(e)
		})
	}
}

// copyBack copies the state of all resources, and what the keys that have changed since revision had then,
// nil for nothing. It is false if the window does not reach back so far.
func (st *state) copyBack(revision int64) (maps []*entryMap, before map[string]*Entry, ok bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	before = map[string]*Entry{}
	for _, r := range st.resources {
		if r.start > revision {
			return nil, nil, false
		}
		maps = append(maps, r.entries.Copy())
		for _, ev := range slices.Backward(r.since(revision)) {
			before[ev.Entry.Key] = ev.Prev
		}
	}
	return maps, before, true
}

// copyAll copies the state of all resources at one revision.
func (st *state) copyAll() (maps []*entryMap, revision int64) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, r := range st.resources {
		maps = append(maps, r.entries.Copy())
	}
	return maps, st.applied.Load()
}

// DigestOf returns the digest of a log of objects, whose values format shows. opened decrypts what is encrypted;
// nil: nobody can.
func DigestOf(ctx context.Context, z changelog.Frozen, format Format, opened Transformer) (Digest, error) {
	head, err := z.Head(ctx)
	if err != nil {
		return Digest{}, fmt.Errorf("digest: %w", err)
	}
	d := Digest{Revision: head.Revision}
	err = z.All(ctx, true, func(r *changelog.Row) error {
		value := r.Value
		if len(value) > 0 && value[0] != '{' {
			if opened == nil {
				d.Unreadable++
				return nil
			}
			if value, _, err = opened.FromStorage(ctx, r.Key, value); err != nil {
				d.Unreadable++
				return nil
			}
		}
		d.add(r.Key, format.Show(value, r.Revision))
		return nil
	})
	return d, err
}
