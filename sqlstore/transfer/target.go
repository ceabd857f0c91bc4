package transfer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// ErrOvertaken says that a later Copy or Intake went on with the target while this one ran. It has ended
// and left everything to the other.
var ErrOvertaken = errors.New("another copy or import to the same target was begun meanwhile, and goes on with it")

const (
	mostChange, mostBytes = 512, 4 << 20 // of one transaction

	// mostRevisions bounds the revisions in memory.
	mostRevisions = 100_000
	// mostAuthors is how many authors are looked for in a log that holds a part already. Another one would be
	// added a second time, which does no harm.
	mostAuthors = 100_000

	// notKnown is what a deletion expects whose key's revision is not known. It fails and tells the revision.
	notKnown = -1
)

// target is a log of objects that a Copy or an Intake fills. Nobody else writes to it. From its first change until finish,
// marks say that it is half filled, and which run fills it: of two, the later one goes on.
type target struct {
	changelog.Log
	run string

	numbers   map[changelog.Author]int64 // of authors; nil: not read yet
	revisions map[string]int64           // newest ones of keys that this run has written; 0: absent. Of others it finds out
}

// sourced is a change with where it comes from. If Expect is 0 the target knows what it is to expect, or finds out.
type sourced struct {
	changelog.Change
	origin changelog.Origin
}

func newTarget(to changelog.Log) *target {
	return &target{Log: to, run: rand.Text(), revisions: map[string]int64{}}
}

// checkEmpty returns the head of a log that holds nothing, and, if it is to be unused, never has.
func checkEmpty(ctx context.Context, to changelog.Log, unused bool) (changelog.Head, error) {
	head, err := to.Head(ctx)
	if err != nil {
		return head, fmt.Errorf("read the target's head: %w", err)
	}
	rows, err := to.State(ctx, "", changelog.End, head.Revision, 1)
	if err != nil {
		return head, fmt.Errorf("read the target: %w", err)
	}
	if len(rows) == 0 && !(unused && head.Revision > 0) {
		return head, nil
	}
	if err := changelog.HalfCopied(ctx, to); err != nil {
		return head, fmt.Errorf("the target: %w", err)
	}
	return head, changelog.ErrNotEmpty
}

// begin lets the log go on above a revision, and marks it as half filled by this run.
func (t *target) begin(ctx context.Context, above int64, marks map[string]string) error {
	if err := t.Raise(ctx, above); err != nil {
		return fmt.Errorf("raise the target's revision: %w", err)
	}
	marks[changelog.MarkRun] = t.run
	if err := t.SetMarks(ctx, marks); err != nil {
		return fmt.Errorf("mark the target: %w", err)
	}
	return nil
}

// takeOver makes this run the one that fills a log of which an earlier one has left a part. A transaction of that may
// still run in the database if it was killed; this one waits for it.
func (t *target) takeOver(ctx context.Context) error {
	err := t.SetMarks(ctx, map[string]string{changelog.MarkRun: t.run})
	if err == nil {
		_, err = t.Append(ctx, nil)
	}
	if err != nil {
		return fmt.Errorf("mark the target: %w", err)
	}
	return nil
}

// checkRun refuses to go on when a later run has begun to write to the log.
func (t *target) checkRun(ctx context.Context) error {
	marks, err := t.Marks(ctx)
	if err != nil {
		return fmt.Errorf("read the target's marks: %w", err)
	}
	if marks[changelog.MarkRun] != t.run {
		return ErrOvertaken
	}
	return nil
}

// finish marks the log as whole. Its history begins then: what was there earlier is not known, and whoever is named in
// its rows has not created the objects with them.
func (t *target) finish(ctx context.Context, marks map[string]string) error {
	if err := t.checkRun(ctx); err != nil {
		return err
	}
	head, err := t.Head(ctx)
	if err == nil {
		err = t.Raise(ctx, head.Revision+1)
	}
	if err != nil {
		return fmt.Errorf("let the target's history begin: %w", err)
	}
	marks[changelog.MarkBrought] = strconv.FormatInt(head.Revision, 10)
	for _, name := range []string{changelog.MarkCopying, changelog.MarkAbove, changelog.MarkRun} {
		marks[name] = ""
	}
	if err := t.SetMarks(ctx, marks); err != nil {
		return fmt.Errorf("mark the target: %w", err)
	}
	return nil
}

// write writes changes, no two of which are of one key, in transactions that are not too large. After an error the same
// changes may be written again, unless it is ErrOvertaken.
func (t *target) write(ctx context.Context, changes []sourced) error {
	if len(changes) == 0 {
		return nil
	}
	if err := t.checkRun(ctx); err != nil {
		return err
	}
	for len(changes) > 0 {
		n, bytes := 1, len(changes[0].Value)
		for n < min(len(changes), mostChange) && bytes+len(changes[n].Value) <= mostBytes {
			bytes += len(changes[n].Value)
			n++
		}
		if err := t.writeBatch(ctx, changes[:n]); err != nil {
			return fmt.Errorf("write to the target: %w", err)
		}
		changes = changes[n:]
	}
	return nil
}

// writeBatch writes a batch. What expects another revision than the log has is written once more, with
// the revision that was found: nobody else writes there.
func (t *target) writeBatch(ctx context.Context, batch []sourced) error {
	if err := t.identify(ctx, batch); err != nil {
		return err
	}
	for i := range batch {
		c := &batch[i]
		revision, known := t.revisions[c.Key]
		switch {
		case c.Expect != 0: // the caller has read it
		case known:
			c.Expect = revision
		case c.Delete:
			c.Expect = notKnown
		}
	}
	failed, err := t.tryWrite(ctx, batch)
	if err == nil && len(failed) > 0 {
		failed, err = t.tryWrite(ctx, failed)
	}
	if err == nil && len(failed) > 0 {
		err = fmt.Errorf("somebody else wrote %s", failed[0].Key)
	}
	return err
}

// tryWrite returns the changes that expected something else, with what they ought to expect. It leaves out deletions of
// what is not there.
func (t *target) tryWrite(ctx context.Context, batch []sourced) (failed []sourced, err error) {
	var changes []changelog.Change
	var tried []*sourced
	for i := range batch {
		c := &batch[i]
		if c.Delete && c.Expect == 0 {
			continue
		}
		if err := t.findLast(ctx, &c.Change); err != nil {
			return nil, err
		}
		changes, tried = append(changes, c.Change), append(tried, c)
	}
	if len(changes) == 0 {
		return nil, nil
	}
	appended, err := t.Append(ctx, changes)
	if err != nil {
		return nil, err
	}
	for i, r := range appended.Results {
		c := tried[i]
		switch {
		case r.Revision != 0:
			t.remember(c, r.Revision)
			continue
		case r.FoundDeleted:
			r.Found = 0
		}
		c.Expect = r.Found
		failed = append(failed, *c)
	}
	return failed, nil
}

// findLast reads the last state of what is deleted, unless the caller has.
func (t *target) findLast(ctx context.Context, c *changelog.Change) error {
	if !c.Delete || c.Value != nil || c.Expect == notKnown {
		return nil
	}
	rows, err := t.State(ctx, c.Key, changelog.After(c.Key), changelog.Forever, 1)
	if err == nil && len(rows) > 0 {
		c.Value = rows[0].Value
	}
	return err
}

func (t *target) remember(c *sourced, revision int64) {
	if len(t.revisions) >= mostRevisions {
		clear(t.revisions)
	}
	if c.Delete {
		revision = 0
	}
	t.revisions[c.Key] = revision
}

// identify gives changes the numbers that the log has for their authors. It adds those that it does
// not have.
func (t *target) identify(ctx context.Context, batch []sourced) (err error) {
	if t.numbers == nil {
		if t.numbers, err = t.Authors(ctx, mostAuthors); err != nil {
			return err
		}
	}
	var add []changelog.Author
	for i := range batch {
		o := &batch[i].origin
		if o.Author != (changelog.Author{}) && t.numbers[o.Author] == 0 {
			add = append(add, o.Author)
			t.numbers[o.Author] = notKnown
		}
	}
	if len(add) > 0 {
		numbers, err := t.AddAuthors(ctx, add)
		if err != nil {
			t.numbers = nil
			return err
		}
		for i, a := range add {
			t.numbers[a] = numbers[i]
		}
	}
	for i := range batch {
		o := &batch[i].origin
		batch[i].Author, batch[i].AuditID = t.numbers[o.Author], changelog.AuditBytes(o.AuditID)
	}
	return nil
}
