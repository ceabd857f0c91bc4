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

// The methods of *Store, in the files that hold them:
//
//	Open(ctx, log Log, o Options) (*Store, error)          open.go   reads the whole state, starts the goroutines; takes over log
//	(*Store) Close() error                                  open.go   refuses new commits, finishes queued ones, ends all watchers with ErrClosed
//	(*Store) Commit(ctx, Change) (*Entry, error)            commit.go
//	(*Store) Get(key string) *Entry                         state.go  current state, nil if absent; no wait, no SQL
//	(*Store) Current(resource string) View                  state.go  current state as a constant-time copy
//	(*Store) At(ctx, resource string, revision int64) (View, error)  list.go   kept snapshot, current state when nothing changed since, or the log
//	(*Store) Keep(View)                                     list.go   keeps a snapshot for later pages
//	(*Store) Sync(ctx) (int64, error)                       tail.go   waits until state has all that was committed anywhere before the call
//	(*Store) Wait(ctx, revision int64) error                tail.go   waits until state has reached revision; ErrFuture when ctx ends first
//	(*Store) Revision() int64, Floor() int64                tail.go
//	(*Store) Watch(resource, prefix string, after int64) (*Watcher, error)   watch.go  ErrCompacted below the floor
//	(*Watcher) Poll(ctx) (events []*Event, through int64, err error)  never blocks on absence of events; may read the log
//	(*Watcher) Wait() <-chan struct{}                       closed when Poll may return more than at its last call
//	(*Watcher) Close()
//	(*Store) Healthy() error                                tail.go   nil, or why the database cannot be used now
//	(*Store) Stats() Stats                                  stats.go  for metrics
