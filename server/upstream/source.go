package upstream

import (
	"context"
	"errors"
)

// Pair is a key of an etcd with its value.
type Pair struct {
	Key   string
	Value []byte
	// Revision is that of the last change of the key. 0: not known.
	Revision int64
}

// Source is the keys of an etcd at one revision. Its methods have one caller at a time.
type Source interface {
	// Revision is the newest that clients may have seen.
	Revision() int64
	// Each calls f with all pairs whose key begins with prefix, page by page and in any order. f may
	// keep the pairs. A LiveSource may show some as they are later, if somebody writes meanwhile and
	// reads Changes from Revision on.
	Each(ctx context.Context, prefix string, f func([]Pair) error) error
	Close() error
}

// LiveSource is a Source that changes.
type LiveSource interface {
	Source
	// Refresh makes Revision and Each go on to the newest revision.
	Refresh(ctx context.Context) error
	// Changes returns changes of keys that begin with prefix, in order, from after the revision up to
	// which all were read. If there are none, it waits for them for a moment, and then returns none.
	// ErrCompacted says that changes are missing.
	Changes(ctx context.Context, prefix string, after int64) (Changes, error)
	// Newest is the newest revision by now.
	Newest(ctx context.Context) (int64, error)
}

// Changes is a piece of what has happened to keys.
type Changes struct {
	Events  []Event
	Through int64 // nothing is missing up to that revision
}

// Event is a change of a key.
type Event struct {
	Pair
	Deleted bool
}

// ErrCompacted says that a source does not have anymore what was asked for.
var ErrCompacted = errors.New("the source was compacted meanwhile")

const (
	pagePairs = 512
	pageBytes = 4 << 20
)

// pages collects pairs into pages.
type pages struct {
	f     func([]Pair) error
	page  []Pair
	bytes int
}

func (p *pages) add(pair Pair) error {
	p.page = append(p.page, pair)
	p.bytes += len(pair.Value)
	if len(p.page) < pagePairs && p.bytes < pageBytes {
		return nil
	}
	return p.flush()
}

func (p *pages) flush() error {
	if len(p.page) == 0 {
		return nil
	}
	page := p.page
	p.page, p.bytes = nil, 0
	return p.f(page)
}
