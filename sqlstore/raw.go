package sqlstore

import (
	"sort"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// ids know what the ids of rows mean. That of an object is its revision; a revision of raw keys has several.
type ids struct {
	raw bool // Options.Format is Raw
}

// end returns the last id of the revision that id belongs to. A revision of an object has but one.
func (x ids) end(id int64) int64 {
	if !x.raw {
		return id
	}
	revision, _ := changelog.Split(id)
	return changelog.LastID(revision)
}

// shown returns the revision that clients know an id by.
func (x ids) shown(id int64) int64 {
	if !x.raw {
		return id
	}
	revision, _ := changelog.Split(id)
	return revision
}

// below returns the last id before the revision that id belongs to.
func (x ids) below(id int64) int64 {
	revision, _ := changelog.Split(id)
	return changelog.FirstID(revision) - 1
}

// whole returns how many of the n rows of a full page are of revisions that are surely complete:
// all but those of the last one. id returns the i-th row's.
func (x ids) whole(n int, id func(i int) int64) int {
	if !x.raw || n == 0 {
		return n
	}
	first := changelog.FirstID(id(n-1) >> changelog.SubBits)
	return sort.Search(n, func(i int) bool { return id(i) >= first })
}

// follows says that no row is missing between two that are read one after the other.
func (x ids) follows(id, next int64) bool {
	if !x.raw {
		return next == id+1
	}
	revision, _ := changelog.Split(id)
	return next == id+1 || next == changelog.FirstID(revision+1)
}
