package upstream

import (
	"context"
	"errors"
)

// Pair is a key of an etcd with its value.
type Pair struct {
	Key   string
	Value []byte
	// Revision is the revision of the key's last change. 0: not known.
	Revision int64
}

// Source is the keys of an etcd at one revision. Its methods have one caller at a time.
type Source interface {
	// Revision returns the newest revision that clients may have seen.
	Revision() int64
	// Each calls f with pages of all pairs whose keys begin with prefix, in any order. f may keep the pairs.
	// A LiveSource may show later values of some pairs if they change meanwhile; callers then read Changes
	// from Revision on.
	Each(ctx context.Context, prefix string, f func([]Pair) error) error
	Close() error
}

// LiveSource is a Source that changes.
type LiveSource interface {
	Source
	// Refresh moves Revision and Each to the newest revision.
	Refresh(ctx context.Context) error
	// Changes returns changes of keys with a prefix, in order, from behind the revision up to which the
	// caller has read everything. If there are none, it waits a moment for some. ErrCompacted means that
	// changes are missing.
	Changes(ctx context.Context, prefix string, after int64) (Changes, error)
	// Newest returns the present newest revision.
	Newest(ctx context.Context) (int64, error)
}

// Changes is a sequence of changes of keys.
type Changes struct {
	Events  []Event
	Through int64 // the sequence is complete up to this revision
}

// Event is a change of a key.
type Event struct {
	Pair
	Deleted bool
}

// ErrCompacted means that a source no longer has the requested changes.
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
