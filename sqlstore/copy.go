package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var (
	// ErrNotEmpty says that the target of Copy holds objects already.
	ErrNotEmpty = errors.New("target holds objects already")

	// ErrHalfCopied says that a Copy into a log was not finished. The log must be emptied
	// before anything else is done with it.
	ErrHalfCopied = errors.New("the database holds a part of a copy that was not finished")
)

// Marks that Copy leaves in its target.
const (
	markCopying = "copying" // while it runs: the source's cluster id
	markOrigin  = "origin/" // and a cluster id: objects were copied from that log, which was at the value's revision
)

// HalfCopied returns ErrHalfCopied if a Copy into log was not finished, else nil, or why
// the marks cannot be read.
func HalfCopied(ctx context.Context, log Log) error {
	marks, err := log.Marks(ctx)
	if err == nil && IsHalfCopied(marks) {
		err = ErrHalfCopied
	}
	return err
}

// IsHalfCopied says whether marks are those of a log into which a Copy was not finished.
func IsHalfCopied(marks map[string]string) bool { return marks[markCopying] != "" }

// CopiedFrom says whether the objects of log were copied from the log with that cluster
// id, directly or by way of others.
func CopiedFrom(ctx context.Context, log Log, clusterID string) (bool, error) {
	marks, err := log.Marks(ctx)
	return marks[markOrigin+clusterID] != "", err
}

// copyPage is how many objects are copied in one transaction.
const copyPage = 256

// Copy fills an empty log with the current state of another, in any dialect, while
// nobody writes to either. History stays behind: the copies get revisions above all
// that from ever served, which makes clients of the old log list anew and never mistake
// one object's version for another's. The target remembers where its objects came from;
// see CopiedFrom. progress, which may be nil, gets the number of objects copied so far;
// Copy returns their number. An error after the first was copied wraps ErrHalfCopied.
func Copy(ctx context.Context, to, from Log, progress func(objects int64)) (int64, error) {
	if from.Kind() != KindAPI || to.Kind() != KindAPI {
		return 0, fmt.Errorf("copy: %w: only the objects of a Kubernetes API are copied", ErrKind)
	}
	if err := HalfCopied(ctx, from); err != nil {
		return 0, fmt.Errorf("copy: the source: %v; copy from the database that has all", err)
	}
	source, err := from.Head(ctx)
	if err != nil {
		return 0, fmt.Errorf("copy: read the source's head: %w", err)
	}
	if err := prepareTarget(ctx, to, from.ClusterID(), source.Revision); err != nil {
		return 0, err
	}
	copied, err := copyRows(ctx, to, from, source.Revision, progress)
	if err == nil {
		err = finish(ctx, to, from, source.Revision)
	}
	if err != nil {
		return copied, fmt.Errorf("%w, of %d objects: %w", ErrHalfCopied, copied, err)
	}
	return copied, nil
}

func copyRows(ctx context.Context, to, from Log, revision int64, progress func(objects int64)) (copied int64, err error) {
	next, end := "", End
	for {
		rows, err := from.State(ctx, next, end, revision, copyPage)
		if err != nil {
			return copied, fmt.Errorf("read the source: %w", err)
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

// prepareTarget makes sure that the target is empty, raises it above revision and marks it.
func prepareTarget(ctx context.Context, to Log, source string, revision int64) error {
	head, err := to.Head(ctx)
	if err != nil {
		return fmt.Errorf("copy: read the target's head: %w", err)
	}
	first, end := "", End
	rows, err := to.State(ctx, first, end, head.Revision, 1)
	if err != nil {
		return fmt.Errorf("copy: read the target: %w", err)
	}
	if len(rows) > 0 {
		if err := HalfCopied(ctx, to); err != nil {
			return fmt.Errorf("copy: the target: %w", err)
		}
		return fmt.Errorf("copy: %w", ErrNotEmpty)
	}
	if err := to.Raise(ctx, max(revision, head.Revision)+1); err != nil {
		return fmt.Errorf("copy: raise the target's revision: %w", err)
	}
	if err := to.SetMarks(ctx, map[string]string{markCopying: source}); err != nil {
		return fmt.Errorf("copy: mark the target: %w", err)
	}
	return nil
}

// finish marks the copy as finished, and as a descendant of the source and of all logs that
// the source was copied from.
func finish(ctx context.Context, to, from Log, revision int64) error {
	inherited, err := from.Marks(ctx)
	if err != nil {
		return fmt.Errorf("read the source's marks: %w", err)
	}
	marks := Descent(from.ClusterID(), revision, inherited)
	marks[markCopying] = ""
	if err := to.SetMarks(ctx, marks); err != nil {
		return fmt.Errorf("mark the target: %w", err)
	}
	return nil
}

// Descent returns the marks of a log whose objects come from the log with that cluster id, which was at
// revision and had the marks inherited.
func Descent(clusterID string, revision int64, inherited map[string]string) map[string]string {
	marks := map[string]string{markOrigin + clusterID: strconv.FormatInt(revision, 10)}
	for name, value := range inherited {
		if strings.HasPrefix(name, markOrigin) {
			marks[name] = value
		}
	}
	return marks
}

func appendAll(ctx context.Context, to Log, rows []Row) error {
	batch := make([]Change, len(rows))
	for i, r := range rows {
		batch[i] = Change{Key: r.Key, Value: r.Value}
	}
	appended, err := to.Append(ctx, batch)
	if err != nil {
		return fmt.Errorf("write to the target: %w", err)
	}
	for i, r := range appended.Results {
		if r.Revision == 0 {
			return fmt.Errorf("somebody else wrote %s to the target", rows[i].Key)
		}
	}
	return nil
}
