package backup

import (
	"context"
	"errors"
	"io"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/scrub"
)

// Verify reads a whole backup and looks at each row. An error says that it is no backup, or not as it was
// written; what was damaged before it was written is in the report.
func Verify(ctx context.Context, from io.Reader, o scrub.Options) (h Header, report scrub.Report, err error) {
	r, err := NewReader(from)
	if err != nil {
		return h, report, err
	}
	defer r.Close()
	rows := scrub.NewRows(o)
	for {
		rec, err := r.Next()
		if err == nil {
			err = ctx.Err()
		}
		switch {
		case errors.Is(err, io.EOF):
			rows.Settle()
			report = rows.Report()
			report.Head = changelog.Head{Revision: r.Header.Revision, Floor: r.Header.Floor}
			if !r.Header.History {
				report.Objects = report.Rows
			}
			return r.Header, report, nil
		case err != nil:
			return r.Header, rows.Report(), err
		case rec.Author != nil:
			rows.Author(rec.Number)
		case rec.Old != nil:
			rows.LookOld(ctx, rec.Old)
		default:
			rows.Look(ctx, rec.Row)
		}
	}
}
