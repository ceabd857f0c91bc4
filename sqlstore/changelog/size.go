package changelog

import "context"

// Size is the space that a log takes.
type Size struct {
	// Rows of the table, history included. Above a size where counting takes long, it is the
	// estimate of the database server; SQLite has none and counts.
	Rows int64
	// Past is the same of the table past, with the old versions that are kept, and PastBytes are its
	// bytes with its indexes; of SQLite an estimate.
	Past, PastBytes int64
	// PastData are the bytes of the keys and values in past, which Compaction.Bound bounds; -1 if they were not
	// added up.
	PastData int64
	// Bytes on disk, or in memory, of both tables with their indexes; of SQLite the whole database
	// with its write-ahead log. Space of deleted rows that was not given back is in it.
	Bytes int64
	// Free bytes of the file system that the database is on; -1 where that is not known.
	Free int64
}

// Summary describes a log to a program that does not serve it.
type Summary struct {
	ClusterID string
	Kind      Kind
	Head
	Size
	Objects int64 // or raw keys, in force at Head.Revision
}

// Summarized is what Summarize asks: a Log, or what a dialect opens only to look.
type Summarized interface {
	ClusterID() string
	Kind() Kind
	Head(ctx context.Context) (Head, error)
	Count(ctx context.Context, from, to string, revision int64) (int64, error)
	Size(ctx context.Context) (Size, error)
}

// Summarize reads the summary of a log.
func Summarize(ctx context.Context, log Summarized) (s Summary, err error) {
	s.ClusterID, s.Kind = log.ClusterID(), log.Kind()
	if s.Head, err = log.Head(ctx); err != nil {
		return s, err
	}
	if s.Objects, err = log.Count(ctx, "", End, s.Revision); err != nil {
		return s, err
	}
	s.Size, err = log.Size(ctx)
	return s, err
}
