package transfer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/pages"
)

// IntakeOptions say what a log takes in.
type IntakeOptions struct {
	// Source names where the objects come from, for as long as only a part of them is there.
	Source string
	// Above is the newest revision that clients may have seen there, or will see. The objects get
	// revisions above it, so that nobody mistakes one object's version for another's.
	Above int64
	// Changes says that keys will be written more than once. The intake then remembers all keys.
	Changes bool
}

// Intake fills a log, page by page, with the objects of another place, without their history. The log is
// empty, or has what an Intake from the same Source has left that did not finish: then all objects are
// written again, and Finish deletes those that were not. Nobody else writes to the log meanwhile. The log
// is not served before Finish. An Intake has one caller at a time.
type Intake struct {
	to        changelog.Log
	id        string
	head      int64
	revisions map[string]int64    // of keys in the log; nil: nothing is written twice
	left      map[string]struct{} // keys that an earlier Intake has written, and this one has not
}

// BeginIntake marks a log as half filled. It returns ErrNotEmpty if the log holds objects or keys, and
// ErrHalfCopied if these are a part of what was to be filled in from another Source, or copied.
func BeginIntake(ctx context.Context, to changelog.Log, o IntakeOptions) (*Intake, error) {
	if to.Kind() != changelog.KindAPI {
		return nil, fmt.Errorf("%w: the target is to hold the objects of a Kubernetes API", changelog.ErrKind)
	}
	in := &Intake{to: to, id: rand.Text()}
	head, err := in.prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	in.head = max(o.Above, head.Revision) + 1
	if err := to.Raise(ctx, in.head); err != nil {
		return nil, fmt.Errorf("raise the target's revision: %w", err)
	}
	if err := to.SetMarks(ctx, map[string]string{changelog.MarkCopying: o.Source, changelog.MarkRun: in.id}); err != nil {
		return nil, fmt.Errorf("mark the target: %w", err)
	}
	if o.Changes && in.revisions == nil {
		in.revisions = map[string]int64{}
	}
	return in, nil
}

// prepare makes sure that the log is empty, or holds what an earlier Intake has left.
func (in *Intake) prepare(ctx context.Context, o IntakeOptions) (changelog.Head, error) {
	marks, err := in.to.Marks(ctx)
	if err != nil {
		return changelog.Head{}, fmt.Errorf("read the target's marks: %w", err)
	}
	if marks[changelog.MarkCopying] == o.Source && o.Source != "" && marks[changelog.MarkAbove] == "" { // Copy has set MarkAbove
		return in.resume(ctx)
	}
	return checkEmpty(ctx, in.to)
}

// resume finds out what an earlier Intake has left.
func (in *Intake) resume(ctx context.Context) (head changelog.Head, err error) {
	if err := in.to.SetMarks(ctx, map[string]string{changelog.MarkRun: in.id}); err != nil {
		return head, fmt.Errorf("mark the target: %w", err)
	}
	// A transaction of an Intake that was killed may still run in the database. This one waits for it.
	if _, err = in.to.Append(ctx, nil); err != nil {
		return head, fmt.Errorf("write to the target: %w", err)
	}
	if head, err = in.to.Head(ctx); err != nil {
		return head, fmt.Errorf("read the target's head: %w", err)
	}
	in.revisions, in.left = map[string]int64{}, map[string]struct{}{}
	next := func(from string, limit int) ([]changelog.Row, error) {
		return in.to.State(ctx, from, changelog.End, head.Revision, limit)
	}
	for rows, err := range pages.ByKey("", next) {
		if err != nil {
			return head, fmt.Errorf("read the target: %w", err)
		}
		for _, r := range rows {
			in.revisions[r.Key], in.left[r.Key] = r.Revision, struct{}{}
		}
	}
	return head, nil
}

func checkEmpty(ctx context.Context, to changelog.Log) (changelog.Head, error) {
	head, err := to.Head(ctx)
	if err != nil {
		return head, fmt.Errorf("read the target's head: %w", err)
	}
	rows, err := to.State(ctx, "", changelog.End, head.Revision, 1)
	if err != nil {
		return head, fmt.Errorf("read the target: %w", err)
	}
	if err := changelog.HalfCopied(ctx, to); err != nil && len(rows) > 0 {
		return head, fmt.Errorf("the target: %w", err)
	}
	if len(rows) > 0 {
		return head, changelog.ErrNotEmpty
	}
	return head, nil
}

// checkRun refuses to go on when a later Intake has begun to write to the log.
func (in *Intake) checkRun(ctx context.Context) error {
	marks, err := in.to.Marks(ctx)
	if err != nil {
		return fmt.Errorf("read the target's marks: %w", err)
	}
	if marks[changelog.MarkRun] != in.id {
		return ErrOvertaken
	}
	return nil
}

// Finish deletes what an earlier Intake has left, and marks the log as whole. Its history begins then.
func (in *Intake) Finish(ctx context.Context) error {
	deletes := make([]changelog.Change, 0, len(in.left))
	for key := range in.left {
		deletes = append(deletes, changelog.Change{Key: key, Delete: true})
	}
	if err := errors.Join(in.Write(ctx, deletes), in.checkRun(ctx)); err != nil {
		return err
	}
	marks, err := endBrought(ctx, in.to)
	if err != nil {
		return err
	}
	marks[changelog.MarkCopying], marks[changelog.MarkRun] = "", ""
	return in.to.SetMarks(ctx, marks)
}

// Write writes changes of different keys. It sets what they expect. Deletes of keys that are not there
// are left out. After an error the same changes may be written again, unless it is ErrOvertaken.
func (in *Intake) Write(ctx context.Context, changes []changelog.Change) error {
	if len(changes) == 0 {
		return nil
	}
	if err := in.checkRun(ctx); err != nil {
		return err
	}
	return eachBatch(changes, func(c *changelog.Change) int { return len(c.Value) }, func(batch []changelog.Change) error { return in.writeBatch(ctx, batch) })
}

func (in *Intake) writeBatch(ctx context.Context, changes []changelog.Change) error {
	batch := make([]changelog.Change, 0, len(changes))
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
	if err != nil {
		return err
	}
	for i := range changes {
		delete(in.left, changes[i].Key)
	}
	return nil
}

// append returns the changes that expected something else, with what they ought to expect.
func (in *Intake) append(ctx context.Context, batch []changelog.Change) (failed []changelog.Change, err error) {
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
func (in *Intake) findLast(ctx context.Context, batch []changelog.Change) error {
	for i := range batch {
		c := &batch[i]
		if !c.Delete || c.Value != nil {
			continue
		}
		rows, err := in.to.State(ctx, c.Key, changelog.After(c.Key), in.head, 1)
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			c.Value = rows[0].Value
		}
	}
	return nil
}
