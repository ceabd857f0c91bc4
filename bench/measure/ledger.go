package measure

import "sync"

// Outcome is what is known of a write.
type Outcome uint8

const (
	not     Outcome = iota // not done, or not known yet
	Done                   // acknowledged
	Unknown                // failed with an error that leaves it open
)

// written is one put, and the deletion of what it put.
type written struct {
	resource     uint8
	put, deleted Outcome
}

// Ledger has all writes of a measurement, by their numbers.
type Ledger struct {
	mu     sync.Mutex
	writes []written
	acked  map[uint8]int // events that watches of a resource have to get
	open   bool          // some outcome is unknown
}

// Begin returns the number of a put that is about to be sent.
func (l *Ledger) Begin(resource uint8) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes = append(l.writes, written{resource: resource})
	return len(l.writes) - 1
}

// Put notes what became of a put.
func (l *Ledger) Put(n int, o Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes[n].put = o
	l.count(l.writes[n].resource, o)
}

// Deleted notes what became of the deletion of what a put has made.
func (l *Ledger) Deleted(n int, o Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writes[n].deleted != Done {
		l.writes[n].deleted = o
		l.count(l.writes[n].resource, o)
	}
}

// count notes one more outcome. The caller holds mu.
func (l *Ledger) count(resource uint8, o Outcome) {
	switch o {
	case Done:
		if l.acked == nil {
			l.acked = map[uint8]int{}
		}
		l.acked[resource]++
	case Unknown:
		l.open = true
	}
}

// expected returns how many events a watch of the resource has to get.
func (l *Ledger) expected(resource uint8) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acked[resource]
}

// doubtful says whether watches may get more than is expected.
func (l *Ledger) doubtful() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// audit returns how many acknowledged events a watch of the resource has not got, and how many it
// got that nobody has made.
func (l *Ledger) audit(w *Watch) (lost, strange int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	compare := func(o Outcome, seen bool) {
		switch {
		case o == Done && !seen:
			lost++
		case o == not && seen:
			strange++
		}
	}
	for n, made := range l.writes {
		if made.resource == w.Resource {
			compare(made.put, w.puts.has(n))
			compare(made.deleted, w.deletes.has(n))
		} else if w.puts.has(n) || w.deletes.has(n) {
			strange++
		}
	}
	return lost, strange
}

// marks is a set of small numbers.
type marks []uint64

func (m marks) has(n int) bool { return n>>6 < len(m) && m[n>>6]&(1<<(n&63)) != 0 }

// add adds n, and says whether it was not there.
func (m *marks) add(n int) bool {
	if m.has(n) {
		return false
	}
	for n>>6 >= len(*m) {
		*m = append(*m, make(marks, n>>6-len(*m)+1)...)
	}
	(*m)[n>>6] |= 1 << (n & 63)
	return true
}
