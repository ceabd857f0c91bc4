package backup

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Above is by how much a restored log continues above the revision of the backup. The log that the
// backup was taken of went on, and nobody knows how far: so this is more than it can have served since.
const Above = 1_000_000_000

// mostRows and mostBytes bound what is inserted at once.
const (
	mostRows  = 1000
	mostBytes = 4 << 20
)

// Restored is what Restore has written.
type Restored struct {
	Header
	Summary
	Floor int64 // of the log now, above which it continues
}

// Restore fills an empty log with a backup, in one transaction: when it fails, nothing was restored.
// Rows keep their revisions, but the log goes on far above them, and everything below is compacted: so
// clients of the old log list anew, and no revision means two things. The log remembers where its
// objects came from; see sqlstore.CopiedFrom.
func Restore(ctx context.Context, to changelog.Log, from io.Reader, progress func(rows, about int64)) (Restored, error) {
	r, err := NewReader(from)
	if err != nil {
		return Restored{}, err
	}
	defer r.Close()
	in := &restoring{r: r, numbers: map[int64]int64{0: 0}, progress: progress}
	err = to.Fill(ctx, func(f changelog.Filler) error { return in.run(ctx, f) })
	return Restored{r.Header, r.Summary(), r.Header.Revision + Above}, err
}

// restoring is one Restore.
type restoring struct {
	r         *Reader
	numbers   map[int64]int64 // of authors, in the log by those in the backup
	batch     []changelog.Row
	old       []changelog.OldRow
	bytes     int
	newest    int64 // row
	newestOld int64
	progress  func(rows, about int64)
}

func (in *restoring) run(ctx context.Context, to changelog.Filler) error {
	for {
		rec, err := in.r.Next()
		if errors.Is(err, io.EOF) {
			return in.finish(ctx, to)
		}
		if err == nil {
			err = in.add(ctx, to, rec)
		}
		if err != nil {
			return err
		}
	}
}

func (in *restoring) add(ctx context.Context, to changelog.Filler, rec Record) error {
	if rec.Author != nil {
		numbers, err := to.Add(ctx, []changelog.Author{*rec.Author})
		if err == nil {
			in.numbers[rec.Number] = numbers[0]
		}
		return err
	}
	if rec.Old != nil {
		old := *rec.Old
		if err := in.take(&old.Row, &in.newestOld); err != nil {
			return err
		}
		in.old = append(in.old, old)
	} else {
		row := *rec.Row
		if err := in.take(&row, &in.newest); err != nil {
			return err
		}
		in.batch = append(in.batch, row)
	}
	if len(in.batch)+len(in.old) < mostRows && in.bytes < mostBytes {
		return nil
	}
	return in.insert(ctx, to)
}

// take makes a row the log's.
func (in *restoring) take(row *changelog.Row, newest *int64) error {
	number, known := in.numbers[row.Author]
	switch {
	case !known:
		return altered("revision %d has an author that it does not have", row.Revision)
	case row.Revision <= *newest:
		return altered("revision %d comes after %d", row.Revision, *newest)
	}
	row.Value, row.AuditID = bytes.Clone(row.Value), bytes.Clone(row.AuditID)
	row.Author, *newest = number, row.Revision
	in.bytes += len(row.Value)
	return nil
}

func (in *restoring) insert(ctx context.Context, to changelog.Filler) error {
	if len(in.old) > 0 {
		if err := to.InsertOld(ctx, in.old); err != nil {
			return err
		}
	}
	if len(in.batch) > 0 {
		if err := to.Insert(ctx, in.batch); err != nil {
			return err
		}
	}
	clear(in.old) // of values
	clear(in.batch)
	in.old, in.batch, in.bytes = in.old[:0], in.batch[:0], 0
	if in.progress != nil {
		in.progress(in.r.seen.Rows+in.r.seen.Old, in.r.Header.About)
	}
	return nil
}

// finish notes where the log continues. Without history there is nothing left for compaction to look at.
func (in *restoring) finish(ctx context.Context, to changelog.Filler) error {
	if err := in.insert(ctx, to); err != nil {
		return err
	}
	h, swept := in.r.Header, in.r.Header.Swept
	if !h.History {
		swept = in.newest
	}
	return to.End(ctx, changelog.Ending{
		Floor: h.Revision + Above, Swept: swept, Kept: h.Kept,
		Marks: changelog.Descent(h.Cluster, h.Revision, h.Marks),
	})
}
