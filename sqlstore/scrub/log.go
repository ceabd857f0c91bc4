package scrub

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// Log looks at a whole log, as it is at one moment. An error says that it could not be read; what is
// damaged is in the report.
func Log(ctx context.Context, source sqlstore.Source, o Options) (report Report, err error) {
	if source.Kind() != sqlstore.KindAPI {
		return report, fmt.Errorf("%w: only the objects of a Kubernetes API can be verified", sqlstore.ErrKind)
	}
	err = source.Freeze(ctx, func(z sqlstore.Frozen) (err error) {
		report, err = look(ctx, z, o)
		return err
	})
	return report, err
}

func look(ctx context.Context, z sqlstore.Frozen, o Options) (Report, error) {
	rows := NewRows(o)
	var err error
	if rows.report.Head, err = z.Head(ctx); err != nil {
		return rows.report, err
	}
	compare, err := rememberMemory(ctx, rows)
	if err != nil {
		return rows.report, err
	}
	if err := lookAtMeta(ctx, z, rows); err != nil {
		return rows.report, err
	}
	err = z.Writers(ctx, func(number int64, _ sqlstore.Author) error {
		rows.Author(number)
		return nil
	})
	if err != nil {
		return rows.report, err
	}
	err = z.Old(ctx, func(r *sqlstore.OldRow) error {
		rows.LookOld(ctx, r)
		return nil
	})
	if err != nil {
		return rows.report, err
	}
	err = z.All(ctx, false, func(r *sqlstore.Row) error {
		rows.Look(ctx, r)
		return nil
	})
	if err != nil {
		return rows.report, err
	}
	if err := compare(z); err != nil {
		return rows.report, err
	}
	return lookAtIndex(ctx, z, rows)
}

// rememberMemory takes the digest of memory, before it moves on too far, and returns what compares that
// with the log.
func rememberMemory(ctx context.Context, rows *Rows) (compare func(sqlstore.Frozen) error, err error) {
	none := func(sqlstore.Frozen) error { return nil }
	if rows.o.Memory == nil {
		return none, nil
	}
	memory, err := rows.o.Memory(ctx, rows.report.Head.Revision)
	if errors.Is(err, sqlstore.ErrCompacted) {
		return none, nil
	}
	return func(z sqlstore.Frozen) (err error) {
		d, err := object.Digest(ctx, z, rows.o.Transformer)
		rows.report.Digest = d
		if err == nil && memory.Unreadable == d.Unreadable && memory != d {
			rows.Problem("memory: this server has %d objects with digest %s in memory, and the database has %d with %s", memory.Objects, memory.Text(), d.Objects, d.Text())
		}
		return err
	}, err
}

// lookAtMeta looks at what the log says of itself.
func lookAtMeta(ctx context.Context, z sqlstore.Frozen, rows *Rows) error {
	meta, err := z.Meta(ctx)
	if err != nil {
		return err
	}
	numbers := map[string]int64{}
	for _, name := range []string{sqlstore.MetaFloor, sqlstore.MetaSwept} {
		n, err := strconv.ParseInt(meta[name], 10, 64)
		if err != nil || n < 0 {
			rows.Problem("meta: %s is %q, not a revision", name, meta[name])
			continue
		}
		numbers[name] = n
	}
	if floor, swept := numbers[sqlstore.MetaFloor], numbers[sqlstore.MetaSwept]; swept > floor {
		rows.Problem("meta: what is up to revision %d is deleted, and only what is below %d is compacted", swept, floor)
	}
	if meta[sqlstore.MetaCluster] == "" {
		rows.Problem("meta: there is no cluster id")
	}
	marks := map[string]string{}
	for name, value := range meta {
		if mark, ok := strings.CutPrefix(name, sqlstore.MetaMark); ok {
			marks[mark] = value
		}
	}
	if sqlstore.IsHalfCopied(marks) {
		rows.Problem("meta: %v", sqlstore.ErrHalfCopied)
	}
	return nil
}

// lookAtIndex reads all rows again, in order of their keys, and compares what it finds with the table
// and with the view.
func lookAtIndex(ctx context.Context, z sqlstore.Frozen, rows *Rows) (Report, error) {
	c := &chains{finder: &rows.finder, floor: rows.report.Head.Floor}
	err := z.Chains(ctx, func(r *sqlstore.Row) error {
		c.look(r)
		return nil
	})
	if err != nil {
		return rows.report, err
	}
	c.settle()
	rows.report.Objects = c.objects
	if c.rows != rows.report.Rows || c.ids != rows.ids {
		rows.Problem("the index of keys leads to %d rows (sum of revisions %d), and the table has %d (%d)", c.rows, c.ids, rows.report.Rows, rows.ids)
	}
	objects, versions, err := z.Shown(ctx)
	if err != nil {
		return rows.report, err
	}
	if objects != c.objects || versions != c.versions {
		rows.Problem("the view objects shows %d objects (sum of revisions %d), and %d (%d) are in force", objects, versions, c.objects, c.versions)
	}
	return rows.report, lookAtHistory(ctx, z, rows)
}

// lookAtHistory looks whether each old version beside the log leads to the next one, unless none is to be
// kept any more, and compares the view history with the rows.
func lookAtHistory(ctx context.Context, z sqlstore.Frozen, rows *Rows) error {
	kept, err := z.Kept(ctx)
	if err == nil && len(kept) > 0 {
		err = z.Broken(ctx, func(r *sqlstore.Row) error {
			rows.found(r, "the version that superseded it is missing")
			return nil
		})
	}
	if err != nil {
		return err
	}
	changes, revisions, err := z.Told(ctx)
	if err != nil {
		return err
	}
	if changes != rows.told || revisions != rows.toldIDs {
		rows.Problem("the view history has %d changes (sum of revisions %d), and the tables have %d (%d)", changes, revisions, rows.told, rows.toldIDs)
	}
	return nil
}
