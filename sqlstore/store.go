package sqlstore

import (
	"context"
	"time"
)

// Options of a Store. Zero values are replaced by the defaults given.
type Options struct {
	// History is how long superseded revisions stay readable; 5 minutes. Negative: for ever.
	History time.Duration
	// CompactEvery is the pause between two looks of the compactor; History/10 within [1s, 1m].
	CompactEvery time.Duration
	// WindowBytes bounds the recent events kept in memory for watches; 32 MiB.
	WindowBytes int
	// MaxBatch and MaxBatchBytes bound one transaction; 512 changes, 4 MiB.
	MaxBatch      int
	MaxBatchBytes int
	// MaxValueBytes bounds one object; 3 MiB, as kube-apiserver bounds a request's body.
	MaxValueBytes int
	// Snapshots is how many past states of one resource are kept for paginated lists; 8.
	Snapshots int
	// QueryTimeout bounds one query for the head or for rows to catch up with; 5 seconds.
	// A database that takes longer counts as unavailable.
	QueryTimeout time.Duration
	// AppendTimeout bounds one transaction until its COMMIT is sent; 15 seconds, so that a
	// lock which another replica holds for a while is not taken for a database that hangs.
	AppendTimeout time.Duration
	// Logf reports what an operator should know; nil: nothing.
	Logf func(format string, args ...any)
}

// View is the exact state of one resource at one revision.
type View interface {
	Revision() int64
	// Scan calls f for each entry with from <= key < to in key order until f returns
	// false. A view of the past may read the log and fail.
	Scan(ctx context.Context, from, to string, f func(*Entry) bool) error
	// Count returns the number of entries with from <= key < to.
	Count(ctx context.Context, from, to string) (int64, error)
	// Get returns the entry of key, nil if there was none.
	Get(ctx context.Context, key string) (*Entry, error)
}

// EventType says what happened to a key.
type EventType uint8

const (
	Put    EventType = iota // Prev is nil for a key that was absent
	Delete                  // Entry is the last state at the tombstone's revision
)

// Event is one change as watchers see it. It is made once and shared by all of them.
type Event struct {
	Type  EventType
	Entry *Entry
	Prev  *Entry // what the key held before, nil if it was absent
}
