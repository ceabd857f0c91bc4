package sqlstore

import (
	"context"
	"fmt"
)

// IntakeOptions say what a log takes in.
type IntakeOptions struct {
	Source string // names where the objects come from, for as long as only a part of them is there
	// Above is the newest revision that clients may have seen there, or will see. The objects get
	// revisions above it, so that nobody mistakes one object's version for another's.
	Above int64
	// Changes says that keys will be written more than once. The intake then remembers all keys.
	Changes bool
}

// Intake fills an empty log, page by page, with the objects of another place, without their history.
// Nobody else writes to the log meanwhile. The log is not served before Finish. An Intake has one caller
// at a time.
type Intake struct {
	to        Log
	head      int64
	revisions map[string]int64 // of keys in the log; nil: nothing is written twice
}

// BeginIntake marks a log as half filled. It returns ErrNotEmpty if the log holds objects or keys, and
// ErrHalfCopied if these are a part of what was to be filled in or copied.
func BeginIntake(ctx context.Context, to Log, o IntakeOptions) (*Intake, error) {
	if to.Kind() != KindAPI {
		return nil, fmt.Errorf("%w: the target is to hold the objects of a Kubernetes API", ErrKind)
	}
	head, err := checkEmpty(ctx, to)
	if err != nil {
		return nil, err
	}
	if err := to.Raise(ctx, max(o.Above, head.Revision)+1); err != nil {
		return nil, fmt.Errorf("raise the target's revision: %w", err)
	}
	if err := to.SetMarks(ctx, map[string]string{markCopying: o.Source}); err != nil {
		return nil, fmt.Errorf("mark the target: %w", err)
	}
	in := &Intake{to: to}
	if o.Changes {
		in.revisions = map[string]int64{}
	}
	return in, nil
}

func checkEmpty(ctx context.Context, to Log) (Head, error) {
	head, err := to.Head(ctx)
	if err != nil {
		return head, fmt.Errorf("read the target's head: %w", err)
	}
	rows, err := to.State(ctx, "", End, head.Revision, 1)
	if err != nil {
		return head, fmt.Errorf("read the target: %w", err)
	}
	if err := HalfCopied(ctx, to); err != nil && len(rows) > 0 {
		return head, fmt.Errorf("the target: %w", err)
	}
	if len(rows) > 0 {
		return head, ErrNotEmpty
	}
	return head, nil
}

// Finish marks the log as whole. Its history begins then.
func (in *Intake) Finish(ctx context.Context) error {
	marks, err := endBrought(ctx, in.to)
	if err != nil {
		return err
	}
	marks[markCopying] = ""
	return in.to.SetMarks(ctx, marks)
}

// Write writes changes of different keys. It sets what they expect. Deletes of keys that are not there
// are left out. After an error the same changes may be written again.
func (in *Intake) Write(ctx context.Context, changes []Change) error {
	return eachBatch(changes, func(batch []Change) error { return in.writeBatch(ctx, batch) })
}

func (in *Intake) writeBatch(ctx context.Context, changes []Change) error {
	batch := make([]Change, 0, len(changes))
	for _, c := range changes {
		c.Expect = in.revisions[c.Key]
		if !c.Delete || c.Expect != 0 {
			batch = append(batch, c)
		}
	}
	failed, err := in.append(ctx, batch)
	if err == nil && len(failed) > 0 && in.revisions != nil { // an earlier write has failed, and was done
		failed, err = in.append(ctx, failed)
	}
	if err == nil && len(failed) > 0 {
		err = fmt.Errorf("somebody else wrote %s", failed[0].Key)
	}
	return err
}

// append returns the changes that expected something else, with what they ought to expect.
func (in *Intake) append(ctx context.Context, batch []Change) (failed []Change, err error) {
	if len(batch) == 0 {
		return nil, nil
	}
	if err := in.findLast(ctx, batch); err != nil {
		return nil, err
	}
	appended, err := in.to.Append(ctx, batch)
	if err != nil {
		return nil, err
	}
	in.head = appended.Head
	for i, r := range appended.Results {
		c := batch[i]
		switch {
		case r.Revision == 0:
			if c.Expect = r.Found; r.FoundDeleted {
				c.Expect = 0
			}
			if !c.Delete || c.Expect != 0 {
				failed = append(failed, c)
			} else {
				delete(in.revisions, c.Key)
			}
		case c.Delete:
			delete(in.revisions, c.Key)
		case in.revisions != nil:
			in.revisions[c.Key] = r.Revision
		}
		in.head = max(in.head, r.Revision)
	}
	return failed, nil
}

// findLast reads the last states of what is deleted.
func (in *Intake) findLast(ctx context.Context, batch []Change) error {
	for i := range batch {
		c := &batch[i]
		if !c.Delete || c.Value != nil {
			continue
		}
		rows, err := in.to.State(ctx, c.Key, after(c.Key), in.head, 1)
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			c.Value = rows[0].Value
		}
	}
	return nil
}
