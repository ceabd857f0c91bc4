package sqlstore

import (
	"sync"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// witness is what the Store expects of its log. The committer tells of what it has added, the tail of
// what it has read.
type witness struct {
	*shared
	state *state

	mu sync.Mutex
	w  changelog.Witness
}

// saw notes a row of the log.
func (wt *witness) saw(id, at int64) {
	if wt.log.Exclusive() {
		return
	}
	wt.mu.Lock()
	defer wt.mu.Unlock()
	w := &wt.w
	if id > max(w.Head, w.Revision) {
		w.Revision, w.At = id, at
		wt.expect()
	}
}

// sawBatch notes the last row of a batch that is committed.
func (wt *witness) sawBatch(b *batch) {
	if n := len(b.updates); n > 0 {
		wt.saw(b.updates[n-1].entry.Revision, b.appended.At)
		return
	}
	for i := len(b.appended.Results) - 1; i >= 0; i-- {
		if r := b.appended.Results[i].Revision; r > 0 {
			wt.saw(r, b.appended.At)
			return
		}
	}
}

// sawState notes a full read of the log at head, in which row is the newest one that is known. What was
// seen of the log beyond the head stays.
func (wt *witness) sawState(head int64, row changelog.Row) {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	w := &wt.w
	w.Head = wt.least(head)
	if w.Revision <= head {
		w.Revision, w.At = row.Revision, row.At
	}
	wt.expect()
}

// sawRaise notes that the log goes on above a revision, and forgets what was there before.
func (wt *witness) sawRaise(above int64) {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	wt.w = changelog.Witness{Head: wt.least(above)}
	wt.expect()
}

// served returns the newest revision that this Store has shown or acknowledged.
func (wt *witness) served() int64 {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	return max(wt.state.applied.Load(), wt.w.Head, wt.w.Revision)
}

// expect tells the log. The caller holds mu.
func (wt *witness) expect() {
	w := wt.w
	wt.log.Expect(&w)
}
