package transfer

import (
	"context"
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
}

// Intake fills a log, page by page, with the objects of another place, without their history. The log is
// empty, or has what an Intake from the same Source has left that did not finish: then all objects are
// written again, and Finish deletes those that were not. Nobody else writes to the log meanwhile. The log
// is not served before Finish. An Intake has one caller at a time.
type Intake struct {
	to   *target
	left map[string]struct{} // keys that an earlier Intake has written, and this one has not
}

// BeginIntake marks a log as half filled. It returns ErrNotEmpty if the log holds objects or keys, and
// ErrHalfCopied if these are a part of what was to be filled in from another Source, or copied.
func BeginIntake(ctx context.Context, to changelog.Log, o IntakeOptions) (*Intake, error) {
	if to.Kind() != changelog.KindAPI {
		return nil, fmt.Errorf("%w: the target is to hold the objects of a Kubernetes API", changelog.ErrKind)
	}
	marks, err := to.Marks(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the target's marks: %w", err)
	}
	in := &Intake{to: newTarget(to)}
	var head changelog.Head
	if marks[changelog.MarkCopying] == o.Source && o.Source != "" && marks[changelog.MarkAbove] == "" { // Copy has set MarkAbove
		head, err = in.resume(ctx)
	} else {
		head, err = checkEmpty(ctx, to, false)
	}
	if err == nil {
		err = in.to.begin(ctx, max(o.Above, head.Revision)+1, map[string]string{changelog.MarkCopying: o.Source})
	}
	if err != nil {
		return nil, err
	}
	return in, nil
}

// resume finds out what an earlier Intake has left.
func (in *Intake) resume(ctx context.Context) (head changelog.Head, err error) {
	if err := in.to.takeOver(ctx); err != nil {
		return head, err
	}
	if head, err = in.to.Head(ctx); err != nil {
		return head, fmt.Errorf("read the target's head: %w", err)
	}
	in.left = map[string]struct{}{}
	next := func(from string, limit int) ([]changelog.Row, error) {
		return in.to.State(ctx, from, changelog.End, head.Revision, limit)
	}
	for rows, err := range pages.ByKey("", next) {
		if err != nil {
			return head, fmt.Errorf("read the target: %w", err)
		}
		for _, r := range rows {
			in.left[r.Key] = struct{}{}
		}
	}
	return head, nil
}

// Write writes changes of different keys. It sets what they expect. Deletes of keys that are not there
// are left out. After an error the same changes may be written again, unless it is ErrOvertaken.
func (in *Intake) Write(ctx context.Context, changes []changelog.Change) error {
	all := make([]sourced, len(changes))
	for i, c := range changes {
		all[i].Change = c
	}
	if err := in.to.write(ctx, all); err != nil {
		return err
	}
	for i := range changes {
		delete(in.left, changes[i].Key)
	}
	return nil
}

// Finish deletes what an earlier Intake has left, and marks the log as whole. Its history begins then.
func (in *Intake) Finish(ctx context.Context) error {
	deletes := make([]changelog.Change, 0, len(in.left))
	for key := range in.left {
		deletes = append(deletes, changelog.Change{Key: key, Delete: true})
	}
	if err := in.Write(ctx, deletes); err != nil {
		return err
	}
	return in.to.finish(ctx, map[string]string{})
}
