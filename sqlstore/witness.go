package sqlstore

import (
	"sync"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// witness is what the Store expects of its log. The committer tells of what it has added, the tail of
// what it has read.
type witness struct {
	mu sync.Mutex
	w  changelog.Witness
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
func (s *Store) sawState(head int64, row changelog.Row) {
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
	revision, _ := changelog.Split(head)
	if revision <= firstRevision {
		return 0
	}
	return changelog.FirstID(revision)
}

// sawRaise notes that the log goes on above a revision, and forgets what was there before.
func (s *Store) sawRaise(above int64) {
	s.witness.mu.Lock()
	defer s.witness.mu.Unlock()
	s.witness.w = changelog.Witness{Head: s.least(above)}
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
