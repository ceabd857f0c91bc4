package sqlstore

import (
	"sort"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/pages"
)

// ids know what the ids of rows mean: that of an object is its revision, and a revision of raw keys has an id for each of
// its rows.
type ids struct {
	sub   uint  // bits of an id that tell the rows of one revision apart
	empty int64 // last id of the empty state
}

// first and end return the least and the last id of the revision that id belongs to.
func (x ids) first(id int64) int64 { return id >> x.sub << x.sub }
func (x ids) end(id int64) int64   { return x.first(id) + 1<<x.sub - 1 }

// shown returns the revision that clients know an id by.
func (x ids) shown(id int64) int64 { return id >> x.sub }

// beyond returns the last id of the revision that is n above that of id.
func (x ids) beyond(id, n int64) int64 { return x.end(id) + n<<x.sub }

// whole returns how many of the n rows of a full page are of revisions that are surely complete: all but those
// of the last one, if that may have more. id returns the i-th row's.
func (x ids) whole(n int, id func(i int) int64) int {
	if n == 0 || id(n-1) == x.end(id(n-1)) {
		return n
	}
	first := x.first(id(n - 1))
	return sort.Search(n, func(i int) bool { return id(i) >= first })
}

// follows says that no row is missing between two that are read one after the other.
func (x ids) follows(id, next int64) bool { return next == id+1 || next == x.end(id)+1 }

// hideGaps says that ids do not tell whether rows are missing: if the last rows of a revision are, the others look
// like all of it.
func (x ids) hideGaps() bool { return x.sub > 0 }

// least returns where the log ends at least after a head that was read there. Of raw keys, a floor in
// the newest revision is above all its rows, and need not be on the disk yet.
func (x ids) least(head int64) int64 {
	if head <= x.empty {
		return 0
	}
	return x.first(head)
}

// limits bound what is read at once.
type limits struct {
	isFull    func(rows []changelog.Row, limit int) bool // a page of Log.Rows ends because it is full
	resident  int                                        // bytes of a log that is read at the start with its values; 0: any
	polled    int                                        // bytes of the events of one Poll, and one revision more
	firstPoll pages.Pager                                // of a Watcher that reads the log
}
