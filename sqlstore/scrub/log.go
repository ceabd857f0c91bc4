package scrub

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// Log looks at a whole log, as it is at one moment. An error, which may be an InterruptedError, says that the
// database is away, or that ctx has ended. Whatever else keeps something from being read is damage: it is in the report,
// and the search goes on behind it.
func Log(ctx context.Context, source changelog.Source, o Options) (Report, error) {
	rows := NewRows(o)
	if source.Kind() != changelog.KindAPI {
		return rows.report, fmt.Errorf("%w: only the objects of a Kubernetes API can be verified", changelog.ErrKind)
	}
	err := source.Freeze(ctx, func(z changelog.Frozen) error { return look(ctx, z, source.ClusterID(), rows) })
	if err := rows.unless(ctx, err, Start); err != nil {
		return rows.report, err
	}
	err = source.Examine(ctx, rows.damaged, func(in, what string) { rows.Problem("%s: %s", in, what) })
	return rows.report, rows.unless(ctx, err, Start)
}

func look(ctx context.Context, z changelog.Frozen, cluster string, rows *Rows) error {
	head, err := z.Head(ctx)
	rows.report.Head = head
	whole := err == nil
	if err != nil && away(ctx, err) {
		return interrupted(err, "%s", Start)
	}
	if err := rows.unless(ctx, err, "table meta"); err != nil {
		return err
	}
	compare := func(changelog.Frozen) error { return nil }
	if whole {
		if compare, err = rememberMemory(ctx, rows); err != nil {
			return err
		}
	}
	if err := lookAtMeta(ctx, z, cluster, rows); err != nil {
		return err
	}
	if err := lookAtRows(ctx, z, rows); err != nil {
		return err
	}
	rows.Settle()
	if rows.emptied() {
		rows.Problem("table log: it has no row, and something was written")
	}
	if rows.partial { // then the digest lacks something, or cannot be made
		compare = nil
	}
	if compare != nil {
		if err := rows.unless(ctx, compare(z), "table log"); err != nil {
			return err
		}
	}
	if !whole {
		rows.report.Head.Floor = math.MaxInt64 // what is missing may have been compacted
	}
	err = lookAtIndex(ctx, z, rows)
	for _, g := range rows.gaps {
		rows.found(nil, "%s", g)
	}
	return err
}

// lookAtRows looks at all rows of all tables in order of their numbers.
func lookAtRows(ctx context.Context, z changelog.Frozen, rows *Rows) error {
	err := z.Writers(ctx, func(number int64, _ changelog.Author) error {
		rows.Author(number)
		return nil
	})
	rows.noAuthors = err != nil
	if err := rows.unless(ctx, err, "table author"); err != nil {
		return err
	}
	err = rows.walk(ctx, "past", func(after int64, limit int, wanted bool) (last int64, _ error) {
		last = after
		return last, z.OldPage(ctx, after, limit, func(r *changelog.OldRow) error {
			if last = r.Revision; wanted {
				rows.LookOld(ctx, r)
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	return rows.walk(ctx, "log", func(after int64, limit int, wanted bool) (last int64, _ error) {
		last = after
		return last, z.Page(ctx, after, limit, func(r *changelog.Row) error {
			if last = r.Revision; wanted {
				rows.Look(ctx, r)
			}
			return nil
		})
	})
}

// rememberMemory takes the digest of memory, before it moves on too far, and returns what compares that
// with the log.
func rememberMemory(ctx context.Context, rows *Rows) (compare func(changelog.Frozen) error, err error) {
	none := func(changelog.Frozen) error { return nil }
	if rows.o.Memory == nil {
		return none, nil
	}
	memory, err := rows.o.Memory(ctx, rows.report.Head.Revision)
	if errors.Is(err, changelog.ErrCompacted) {
		return none, nil
	}
	if err != nil { // values that are not in memory could not be read
		if away(ctx, err) {
			return none, interrupted(err, "%s", Start)
		}
		return none, rows.unless(ctx, err, "memory")
	}
	return func(z changelog.Frozen) (err error) {
		d, err := object.Digest(ctx, z, rows.o.Transformer)
		rows.report.Digest = d
		if err == nil && memory.Unreadable == d.Unreadable && memory != d {
			rows.Problem("memory: this server has %d objects with digest %s in memory, and the database has %d with %s", memory.Objects, memory.Text(), d.Objects, d.Text())
		}
		return err
	}, err
}

// lookAtMeta looks at what the log says of itself.
func lookAtMeta(ctx context.Context, z changelog.Frozen, cluster string, rows *Rows) error {
	meta, err := z.Meta(ctx)
	if err != nil {
		return rows.unless(ctx, err, "table meta")
	}
	numbers := map[string]int64{}
	for _, name := range []string{changelog.MetaFloor, changelog.MetaSwept} {
		n, err := strconv.ParseInt(meta[name], 10, 64)
		if err != nil || n < 0 {
			rows.Problem("meta: %s is %q, not a revision", name, meta[name])
			continue
		}
		numbers[name] = n
	}
	if floor, swept := numbers[changelog.MetaFloor], numbers[changelog.MetaSwept]; swept > floor {
		rows.Problem("meta: what is up to revision %d is deleted, and only what is below %d is compacted", swept, floor)
	}
	switch id := meta[changelog.MetaCluster]; {
	case id == "":
		rows.Problem("meta: there is no cluster id")
	case id != cluster:
		rows.Problem("meta: the cluster id is %q, and was %q", id, cluster)
	}
	if format := meta[changelog.MetaFormat]; format != changelog.Format1 {
		rows.Problem("meta: the format is %q, not %q", format, changelog.Format1)
	}
	if kind := meta[changelog.MetaKind]; kind != string(changelog.KindAPI) {
		rows.Problem("meta: the kind is %q, not %q", kind, changelog.KindAPI)
	}
	marks := map[string]string{}
	for name, value := range meta {
		if mark, ok := strings.CutPrefix(name, changelog.MetaMark); ok {
			marks[mark] = value
		}
	}
	if changelog.IsHalfCopied(marks) {
		rows.Problem("meta: %v", changelog.ErrHalfCopied)
	}
	return nil
}

// lookAtIndex reads all rows again, in order of their keys, and compares what it finds with the table
// and with the view.
func lookAtIndex(ctx context.Context, z changelog.Frozen, rows *Rows) error {
	c, err := rows.walkChains(ctx, z, rows.report.Head.Floor)
	if err != nil {
		return err
	}
	c.settle()
	rows.report.Objects = c.objects
	if !rows.partial && (c.rows != rows.report.Rows || c.ids != rows.ids) {
		rows.Problem("the index of keys leads to %d rows (sum of revisions %d), and the table has %d (%d)", c.rows, c.ids, rows.report.Rows, rows.ids)
	}
	objects, versions, err := z.Shown(ctx)
	if err := rows.unlessGap(ctx, err, "view objects"); err != nil {
		return err
	}
	if err == nil && !rows.partial && (objects != c.objects || versions != c.versions) {
		rows.Problem("the view objects shows %d objects (sum of revisions %d), and %d (%d) are in force", objects, versions, c.objects, c.versions)
	}
	return lookAtHistory(ctx, z, rows)
}

// lookAtHistory looks whether each old version beside the log leads to the next one, unless none is to be
// kept any more, and compares the view history with the rows.
func lookAtHistory(ctx context.Context, z changelog.Frozen, rows *Rows) error {
	kept, err := z.Kept(ctx)
	if err := rows.unless(ctx, err, "table kept"); err != nil {
		return err
	}
	for prefix, lost := range kept {
		if lost < 0 || prefix != "" && !strings.HasPrefix(prefix, "/registry/") {
			rows.Problem("table kept: old versions of %q are said to be known from revision %d on", prefix, lost)
		}
	}
	if err == nil && len(kept) > 0 {
		err := z.Broken(ctx, func(r *changelog.Row) error {
			rows.found(r, "the version that superseded it is missing")
			return nil
		})
		if err := rows.unlessGap(ctx, err, "table past"); err != nil {
			return err
		}
	}
	changes, revisions, err := z.Told(ctx)
	if err := rows.unlessGap(ctx, err, "view history"); err != nil {
		return err
	}
	if err == nil && !rows.partial && (changes != rows.told || revisions != rows.toldIDs) {
		rows.Problem("the view history has %d changes (sum of revisions %d), and the tables have %d (%d)", changes, revisions, rows.told, rows.toldIDs)
	}
	return nil
}
