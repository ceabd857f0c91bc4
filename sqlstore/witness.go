package sqlstore

import (
	"fmt"
	"sync"
)

// Witness is by what a Store knows its log again. Its row is the newest one that the Store has read
// from the log or added to it; as rows are never changed, and the newest one is never deleted, another
// row in its place, or none, tells that the database was set back.
type Witness struct {
	Head     int64 // the head was here, or beyond
	Revision int64 // of the row; 0: none
	At       int64 // commit time of the row
}

// SetBackError is an ErrSetBack that says where the log ends now.
type SetBackError struct {
	Found Head
	known Witness
}

func (e *SetBackError) Error() string {
	return fmt.Sprintf("%v: it ends at %d, and %d was there", ErrSetBack, e.Found.Revision, max(e.known.Head, e.known.Revision))
}

func (e *SetBackError) Unwrap() error { return ErrSetBack }

// Row returns the id of the row that a dialect looks for; 0, which no row has, if there is none.
func (w *Witness) Row() int64 {
	if w == nil {
		return 0
	}
	return w.Revision
}

// Check compares the log with w, which may be nil. at is the time of the row w.Revision, nil if that is
// not there. A row at or below the floor may have been compacted.
func (w *Witness) Check(now Head, at *int64) error {
	switch {
	case w == nil:
		return nil
	case now.Revision < w.Head, at != nil && *at != w.At, at == nil && now.Floor < w.Revision:
		return &SetBackError{Found: now, known: *w}
	}
	return nil
}

// CheckRows is Check for rows that follow w: ErrCompacted if w itself is compacted, since they do not
// tell then what became of the state that has w.
func (w *Witness) CheckRows(now Head, at *int64) error {
	if err := w.Check(now, at); err != nil {
		return err
	}
	if w.Row() > 0 && at == nil {
		return ErrCompacted
	}
	return nil
}

// witness is what the Store expects of its log. The committer tells of what it has added, the tail of
// what it has read.
type witness struct {
	mu sync.Mutex
	w  Witness
}

// saw notes a row of the log.
func (s *Store) saw(id, at int64) {
	if s.log.Exclusive() {
		return
	}
	s.witness.mu.Lock()
	defer s.witness.mu.Unlock()
	w := &s.witness.w
	if id > max(w.Head, w.Revision) {
		w.Revision, w.At = id, at
		s.expect()
	}
}

// sawBatch notes the last row of a batch that is committed.
func (s *Store) sawBatch(b *batch) {
	if n := len(b.updates); n > 0 {
		s.saw(b.updates[n-1].entry.Revision, b.appended.At)
		return
	}
	for i := len(b.appended.Results) - 1; i >= 0; i-- {
		if r := b.appended.Results[i].Revision; r > 0 {
			s.saw(r, b.appended.At)
			return
		}
	}
}

// sawState notes a full read of the log at head, in which row is the newest one that is known. What was
// seen of the log beyond the head stays.
func (s *Store) sawState(head int64, row Row) {
	s.witness.mu.Lock()
	defer s.witness.mu.Unlock()
	w := &s.witness.w
	w.Head = s.least(head)
	if w.Revision <= head {
		w.Revision, w.At = row.Revision, row.At
	}
	s.expect()
}

// least returns where the log ends at least after a head that was read there. Of raw keys, a floor in
// the newest revision is above all its rows, and need not be on the disk yet.
func (s *Store) least(head int64) int64 {
	if !s.raw {
		return head
	}
	revision, _ := Split(head)
	if revision <= firstRevision {
		return 0
	}
	return FirstID(revision)
}

// sawRaise notes that the log goes on above a revision, and forgets what was there before.
func (s *Store) sawRaise(above int64) {
	s.witness.mu.Lock()
	defer s.witness.mu.Unlock()
	s.witness.w = Witness{Head: s.least(above)}
	s.expect()
}

// served returns the newest revision that this Store has shown or acknowledged.
func (s *Store) served() int64 {
	s.witness.mu.Lock()
	defer s.witness.mu.Unlock()
	return max(s.Revision(), s.witness.w.Head, s.witness.w.Revision)
}

// expect tells the log. The caller holds mu.
func (s *Store) expect() {
	w := s.witness.w
	s.log.Expect(&w)
}
