package transfer

import (
	"context"
	"fmt"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// sourced is a change with where it comes from.
type sourced struct {
	changelog.Change
	origin changelog.Origin
}

// writeAll writes changes to the target, in transactions that are not too large. No two are of one key.
func (c *copier) writeAll(ctx context.Context, changes []sourced) error {
	if len(changes) > 0 {
		if err := c.checkRun(ctx); err != nil {
			return err
		}
	}
	return eachBatch(changes, func(c *sourced) int { return len(c.Value) }, func(batch []sourced) error { return c.write(ctx, batch) })
}

// eachBatch calls write with changes in transactions that are not too large.
func eachBatch[C any](changes []C, size func(*C) int, write func([]C) error) error {
	for len(changes) > 0 {
		n, bytes := 0, 0
		for n < len(changes) && n < mostChange && (n == 0 || bytes+size(&changes[n]) <= mostBytes) {
			bytes += size(&changes[n])
			n++
		}
		if err := write(changes[:n]); err != nil {
			return fmt.Errorf("write to the target: %w", err)
		}
		changes = changes[n:]
	}
	return nil
}

// write writes a batch. What expects another revision than the target has is written once more, with
// the revision that was found: nobody else writes there.
func (c *copier) write(ctx context.Context, batch []sourced) error {
	if err := c.identify(ctx, batch); err != nil {
		return err
	}
	for i := range batch {
		if revision, ok := c.revisions[batch[i].Key]; ok && batch[i].Expect == notKnown {
			batch[i].Expect = revision
		}
	}
	failed, err := c.tryWrite(ctx, batch)
	if err == nil && len(failed) > 0 {
		if failed, err = c.tryWrite(ctx, failed); err == nil && len(failed) > 0 {
			err = fmt.Errorf("somebody else wrote %s", failed[0].Key)
		}
	}
	return err
}

// tryWrite returns the changes that expected something else, with what they ought to expect.
func (c *copier) tryWrite(ctx context.Context, batch []sourced) (failed []sourced, err error) {
	batch = writable(batch)
	if len(batch) == 0 {
		return nil, nil
	}
	changes := make([]changelog.Change, len(batch))
	for i := range batch {
		changes[i] = batch[i].Change
	}
	appended, err := c.to.Append(ctx, changes)
	if err != nil {
		return nil, err
	}
	for i, r := range appended.Results {
		change := batch[i]
		switch {
		case r.Revision == 0 && r.FoundDeleted:
			change.Expect = 0
			failed = append(failed, change)
		case r.Revision == 0:
			change.Expect = r.Found
			failed = append(failed, change)
		case c.following:
			c.remember(&change, r.Revision)
		}
	}
	return failed, nil
}

// writable leaves out deletes of what is not there: it was made and deleted between two reads.
func writable(batch []sourced) []sourced {
	out := batch[:0:0]
	for _, change := range batch {
		if !change.Delete || change.Expect != 0 {
			out = append(out, change)
		}
	}
	return out
}

// mostRevisions bounds the revisions of the target in memory.
const mostRevisions = 100_000

func (c *copier) remember(change *sourced, revision int64) {
	if len(c.revisions) >= mostRevisions {
		clear(c.revisions)
	}
	if change.Delete {
		revision = 0
	}
	c.revisions[change.Key] = revision
}

// identify gives changes the numbers that the target has for their authors. It adds those that it does
// not have.
func (c *copier) identify(ctx context.Context, batch []sourced) (err error) {
	if c.numbers == nil {
		if c.numbers, err = c.to.Authors(ctx, mostCopiedAuthors); err != nil {
			return err
		}
	}
	var add []changelog.Author
	for i := range batch {
		if o := &batch[i].origin; o.Author != (changelog.Author{}) && c.numbers[o.Author] == 0 {
			add = append(add, o.Author)
			c.numbers[o.Author] = notKnown
		}
	}
	if len(add) > 0 {
		numbers, err := c.to.AddAuthors(ctx, add)
		if err != nil {
			c.numbers = nil
			return err
		}
		for i, a := range add {
			c.numbers[a] = numbers[i]
		}
	}
	for i := range batch {
		o := &batch[i].origin
		batch[i].Author, batch[i].AuditID = c.numbers[o.Author], changelog.AuditBytes(o.AuditID)
	}
	return nil
}

// mostCopiedAuthors is how many authors a copy that goes on finds in the target. Another one would be
// added a second time, which does no harm.
const mostCopiedAuthors = 100_000
