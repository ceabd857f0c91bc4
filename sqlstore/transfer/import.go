package transfer

import (
	"context"
	"errors"
	"fmt"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Import is what is to become of an empty log of raw keys: the rows of a database of another kind,
// with its revisions.
type Import struct {
	Source   string // names the database, for as long as a part of it is there
	Revision int64  // the newest
	Floor    int64  // compacted revision

	// Page returns rows with ids that grow from page to page, and none at the end. Times are not
	// asked for.
	Page func(ctx context.Context) ([]changelog.Row, error)
	// Leases returns, when all rows were asked for, the leases that rows name, with their TTL. They
	// begin anew.
	Leases func() []changelog.Lease
	// Progress, which may be nil, gets the number of rows written so far.
	Progress func(rows int64)
}

// Run writes the rows to a log, to which nobody else writes, and returns their number. Revisions
// without a row are gaps. An error after the first row wraps ErrHalfCopied.
func (im Import) Run(ctx context.Context, to changelog.Log) (rows int64, err error) {
	if _, err := checkEmpty(ctx, to, true); err != nil {
		return 0, fmt.Errorf("import: %w", err)
	}
	if err := to.SetMarks(ctx, map[string]string{changelog.MarkCopying: im.Source}); err != nil {
		return 0, fmt.Errorf("import: mark the target: %w", err)
	}
	rows, err = im.write(ctx, to)
	if err == nil {
		err = to.SetMarks(ctx, map[string]string{changelog.MarkCopying: ""})
	}
	if err != nil {
		return rows, fmt.Errorf("%w, of %d rows: %w", changelog.ErrHalfCopied, rows, err)
	}
	return rows, nil
}

func (im Import) write(ctx context.Context, to changelog.Log) (rows int64, err error) {
	last := int64(0)
	for {
		page, err := im.Page(ctx)
		if err != nil {
			return rows, err
		}
		if len(page) == 0 {
			return rows, im.finish(ctx, to, last)
		}
		if err := appendRaw(ctx, to, page, last); err != nil {
			return rows, err
		}
		last = page[len(page)-1].Revision
		rows += int64(len(page))
		if im.Progress != nil {
			im.Progress(rows)
		}
	}
}

var errOtherWriter = errors.New("somebody else wrote to the target")

// appendRaw writes a page after the row with id last.
func appendRaw(ctx context.Context, to changelog.Log, page []changelog.Row, last int64) error {
	err := to.Transact(ctx, changelog.Ask{After: last}, func(found *changelog.Found) (changelog.Decision, error) {
		if found.Head.Revision != last {
			return changelog.Decision{}, errOtherWriter
		}
		for i := range page {
			page[i].At = found.At
		}
		return changelog.Decision{Rows: page}, nil
	})
	if err != nil {
		return fmt.Errorf("write to the target: %w", err)
	}
	return nil
}

// finish grants the leases, continues above the source's newest revision, and makes its compacted
// revision the floor.
func (im Import) finish(ctx context.Context, to changelog.Log, last int64) error {
	if leases := im.Leases(); len(leases) > 0 {
		err := to.Transact(ctx, changelog.Ask{After: last}, func(found *changelog.Found) (changelog.Decision, error) {
			granted := make([]changelog.Lease, len(leases))
			for i, l := range leases {
				granted[i] = changelog.Lease{ID: l.ID, TTL: l.TTL, Expires: found.Now + 1000*l.TTL}
			}
			return changelog.Decision{Grant: granted}, nil
		})
		if err != nil {
			return fmt.Errorf("grant the leases: %w", err)
		}
	}
	if newest := changelog.FirstID(im.Revision); newest > last {
		if err := to.Raise(ctx, newest); err != nil {
			return fmt.Errorf("raise the target's revision: %w", err)
		}
	}
	if im.Floor > 0 {
		if _, err := to.Cut(ctx, changelog.LastID(im.Floor)); err != nil {
			return fmt.Errorf("compact the target: %w", err)
		}
	}
	return nil
}
