package sqlstore

import (
	"context"
	"errors"
	"fmt"
)

// ErrNotEmpty says that the target of Copy holds objects already.
var ErrNotEmpty = errors.New("target holds objects already")

// copyPage is how many objects go over in one transaction.
const copyPage = 256

// Copy fills an empty log with the current state of another, in any dialect, while
// nobody writes to either. History stays behind: the copies get revisions above all
// that from ever served, which makes clients of the old log list anew and never mistake
// one object's version for another's. progress is told how many objects are over; nil:
// nobody. It returns their number.
func Copy(ctx context.Context, to, from Log, progress func(objects int64)) (int64, error) {
	source, err := from.Head(ctx)
	if err != nil {
		return 0, fmt.Errorf("copy: read the source's head: %w", err)
	}
	if err := makeReady(ctx, to, source.Revision); err != nil {
		return 0, err
	}
	copied := int64(0)
	next, end := RangeOf("/registry/")
	for {
		rows, err := from.State(ctx, next, end, source.Revision, copyPage)
		if err != nil {
			return copied, fmt.Errorf("copy: read the source: %w", err)
		}
		if len(rows) == 0 {
			return copied, nil
		}
		if err := appendAll(ctx, to, rows); err != nil {
			return copied, err
		}
		next = after(rows[len(rows)-1].Key)
		copied += int64(len(rows))
		if progress != nil {
			progress(copied)
		}
	}
}

// makeReady makes sure that the target is empty and goes on above revision.
func makeReady(ctx context.Context, to Log, revision int64) error {
	head, err := to.Head(ctx)
	if err != nil {
		return fmt.Errorf("copy: read the target's head: %w", err)
	}
	first, end := RangeOf("/registry/")
	rows, err := to.State(ctx, first, end, head.Revision, 1)
	if err != nil {
		return fmt.Errorf("copy: read the target: %w", err)
	}
	if len(rows) > 0 {
		return fmt.Errorf("copy: %w", ErrNotEmpty)
	}
	if err := to.Raise(ctx, max(revision, head.Revision)+1); err != nil {
		return fmt.Errorf("copy: raise the target's revision: %w", err)
	}
	return nil
}

func appendAll(ctx context.Context, to Log, rows []Row) error {
	batch := make([]Change, len(rows))
	for i, r := range rows {
		batch[i] = Change{Key: r.Key, Value: r.Value}
	}
	appended, err := to.Append(ctx, batch)
	if err != nil {
		return fmt.Errorf("copy: write to the target: %w", err)
	}
	for i, r := range appended.Results {
		if r.Revision == 0 {
			return fmt.Errorf("copy: somebody else wrote %s to the target", rows[i].Key)
		}
	}
	return nil
}
