package sqlstore

import (
	"context"
	"log/slog"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Options of a Store. Zero values are replaced by the defaults given.
type Options struct {
	// Format says what keys and values mean; Raw.
	Format Format
	// History is how long superseded revisions stay readable; 5 minutes. Negative: for ever.
	History time.Duration
	// Retention says which old versions of objects stay readable for longer, by Past; nil: none do.
	Retention *changelog.Retention
	// RetentionBytes bounds the keys and values of old versions that Retention keeps: beyond it those go that would
	// go first anyway. 0: there is no bound. BoundByShare: see there.
	RetentionBytes int64
	// CompactEvery is the pause between two looks of the compactor; History/10 within [1s, 1m].
	CompactEvery time.Duration
	// WindowBytes bounds the recent events kept in memory for watches; 32 MiB.
	WindowBytes int
	// WindowAge is how long they are kept at least, within WindowBytes; 1 minute. They leave before they are twice as old.
	WindowAge time.Duration
	// CacheBytes bounds the values of raw keys in memory; 8 MiB. Their keys are all there.
	CacheBytes int
	// IndexBytes bounds the indexes in memory; 64 MiB. Negative: there are none.
	IndexBytes int
	// StateBytes bounds what the state of objects takes in memory: beyond it values are read from the log, and
	// keys, revisions and indexes stay. 0: there is no bound.
	StateBytes int
	// MaxBatch and MaxBatchBytes bound one transaction; 512 changes, 4 MiB.
	MaxBatch      int
	MaxBatchBytes int
	// MaxValueBytes bounds one value; 3 MiB, as kube-apiserver bounds a request's body.
	MaxValueBytes int
	// Snapshots is how many past states of one resource are kept for paginated lists; 8.
	Snapshots int
	// QueryTimeout bounds one query for the head or for rows to catch up with; 5 seconds.
	// A database that takes longer counts as unavailable.
	QueryTimeout time.Duration
	// AppendTimeout bounds one transaction until its COMMIT is sent; 15 seconds, so that a
	// lock which another replica holds for a while is not taken for a database that hangs.
	AppendTimeout time.Duration
	// Transformer changes values on their way into the log and back; nil: none does. See
	// Entry.Unreadable for values that cannot be read.
	Transformer Transformer
	// Check says what is wrong with the value of a row that comes from the log, as readers would see it but for
	// Format.Show; nil: nothing is. What is wrong is damaged (ErrUndecodable), and its entry unreadable. Changes of this
	// process are not checked. The errors go to clients and into the log, so they must not have a part of the value.
	Check func(key string, value []byte) error
	// Author is that of changes whose context does not say where they come from.
	Author changelog.Author
	// Log gets what an operator should know; nil: nothing.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	orInt := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	if o.Format == nil {
		o.Format = Raw{}
	}
	if o.History == 0 {
		o.History = 5 * time.Minute
	}
	if o.CompactEvery <= 0 {
		o.CompactEvery = min(max(o.History/10, time.Second), time.Minute)
	}
	orInt(&o.WindowBytes, 32<<20)
	if o.WindowAge <= 0 {
		o.WindowAge = time.Minute
	}
	orInt(&o.CacheBytes, 8<<20)
	if o.IndexBytes == 0 {
		o.IndexBytes = 64 << 20
	}
	orInt(&o.MaxBatch, 512)
	orInt(&o.MaxBatchBytes, 4<<20)
	orInt(&o.MaxValueBytes, 3<<20)
	orInt(&o.Snapshots, 8)
	if o.QueryTimeout <= 0 {
		o.QueryTimeout = 5 * time.Second
	}
	if o.AppendTimeout <= 0 {
		o.AppendTimeout = 15 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Transformer changes values on their way into the log and back: encryption at rest. Its
// methods are called by many goroutines at once and may ask another process for a key.
type Transformer interface {
	// ToStorage returns what the log holds of the value of key.
	ToStorage(ctx context.Context, key string, value []byte) ([]byte, error)
	// FromStorage returns the value of key from what the log holds of it. stale says that
	// ToStorage would store it in another way now. An error that wraps ErrUndecodable will never be another.
	FromStorage(ctx context.Context, key string, stored []byte) (value []byte, stale bool, err error)
}
