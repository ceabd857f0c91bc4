package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/plinth-io/plinth/dialects/internal/scan"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// held is the log up to a revision, while nothing is compacted. No row of it goes or changes, so it is
// read page by page: a transaction that lasts would make the write-ahead log grow, which costs a lone
// writer a fifth of its speed, and writers of a database in memory would have to wait for its end.
type held struct {
	l       *database
	head    changelog.Head
	meta    map[string]string
	kept    map[string]int64
	authors int64 // greatest number
	pages         // for those who search for damage

	noHead, noMeta, noKept error // why these could not be read although the database is there

	rows  []changelog.Row // of a page
	bytes []byte          // of their values
}

const (
	heldRows  = 1000 // of a page, at most
	heldBytes = 1 << 20
)

// hold calls f while nothing is compacted. Only a full disk is more important, and that an object is
// forgotten: what f reads after that is ErrUnavailable.
func (l source) hold(ctx context.Context, f func(changelog.Frozen) error) error {
	err := l.use(ctx, func(*writer) error { // so that no compaction is under way
		l.holds.Add(1)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	defer l.holds.Add(-1)
	h := &held{l: l.database}
	if err := h.begin(ctx); err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	return f(h)
}

// held says whether compaction has to wait.
func (l *database) held() bool { return l.holds.Load() > 0 && l.Condition() == nil }

// pastHeld says whether old versions beside the log have to stay as they are. On a full disk, too: few
// of them expire while a backup is made.
func (l *database) pastHeld() bool { return l.holds.Load() > 0 }

// begin reads what says where the log ends. What of that is damaged fails who asks for it.
func (h *held) begin(ctx context.Context) error {
	tx, err := h.l.reads.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // it only reads
	h.head.Revision, h.authors = math.MaxInt64, math.MaxInt64
	h.meta, err = scan.Marks(tx.QueryContext(ctx, `SELECT name, value FROM meta`))
	if h.noMeta = damage(err); passes(h.noMeta) {
		return h.noMeta
	}
	h.kept, err = scan.Kept(tx.QueryContext(ctx, `SELECT prefix, lost FROM kept`))
	if h.noKept = damage(err); passes(h.noKept) {
		return h.noKept
	}
	err = tx.QueryRowContext(ctx, `
		SELECT coalesce((SELECT max(id) FROM log), 0),
		       coalesce((SELECT max(id) FROM author), 0)`).Scan(&h.head.Revision, &h.authors)
	if h.noHead = damage(err); passes(h.noHead) {
		return h.noHead
	}
	if h.noHead == nil && h.noMeta == nil {
		h.head.Floor, h.noHead = strconv.ParseInt(h.meta[changelog.MetaFloor], 10, 64)
		h.head.Revision = max(h.head.Revision, h.head.Floor)
	}
	h.pages = pages{from: h.l.reads, through: h.head.Revision, check: h.check}
	return nil
}

// passes says that err, which damage has judged, is no damage.
func passes(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, changelog.ErrUnavailable) && !errors.Is(err, changelog.ErrDamaged)
}

// check makes sure that nothing was missing when rows were read before it.
func (h *held) check(ctx context.Context) error {
	var swept, floor string
	err := h.l.reads.QueryRowContext(ctx, `
		SELECT (SELECT value FROM meta WHERE name = 'swept'),
		       (SELECT value FROM meta WHERE name = 'floor')`).Scan(&swept, &floor)
	if err == nil && (swept != h.meta[changelog.MetaSwept] || floor != h.meta[changelog.MetaFloor]) {
		err = fmt.Errorf("%w: old versions were deleted meanwhile, because the disk is nearly full or somebody had an object forgotten; try again", changelog.ErrUnavailable)
	}
	return err
}

// Head is the end of the log.
func (h *held) Head(context.Context) (changelog.Head, error) {
	if err := cmp.Or(h.noHead, h.noMeta); err != nil {
		return h.head, fmt.Errorf("read head: %w", err)
	}
	return h.head, nil
}

// Meta returns the table of that name.
func (h *held) Meta(context.Context) (map[string]string, error) {
	if h.noMeta != nil {
		return nil, fmt.Errorf("read meta: %w", h.noMeta)
	}
	return h.meta, nil
}

// Writers calls f with all authors.
func (h *held) Writers(ctx context.Context, f func(number int64, a changelog.Author) error) error {
	return scan.EachAuthor(f)(h.l.reads.QueryContext(ctx, `
		SELECT id, who, impersonator, verb, subresource, manager FROM author WHERE id <= ? ORDER BY id`, h.authors))
}

// All calls f with rows in order of their ids.
func (h *held) All(ctx context.Context, inForce bool, f func(*changelog.Row) error) error {
	read := h.page
	if inForce {
		read = h.pageInForce
	}
	return eachPage(ctx, h, f, func(last *changelog.Row) ([]changelog.Row, error) { return read(ctx, last.Revision) })
}

// eachPage calls f with the rows of all pages. next reads the page after a row, at first after the zero
// row.
func eachPage[R any](ctx context.Context, h *held, f func(*R) error, next func(last *R) ([]R, error)) error {
	for last := new(R); ; {
		page, err := next(last)
		if err == nil {
			err = h.check(ctx)
		}
		if err != nil {
			return fmt.Errorf("read rows: %w", damage(err))
		}
		for i := range page {
			if err := f(&page[i]); err != nil {
				return err
			}
		}
		if len(page) == 0 {
			return nil
		}
		*last = page[len(page)-1]
	}
}

// page reads the next rows, and copies them, so that the query ends.
func (h *held) page(ctx context.Context, after int64) ([]changelog.Row, error) {
	rows, err := h.l.reads.QueryContext(context.WithoutCancel(ctx), `
		SELECT id, key, create_id, deleted, at, value, author, audit_id
		FROM log NOT INDEXED
		WHERE id > ? AND id <= ?
		ORDER BY id
		LIMIT ?`, after, h.head.Revision, heldRows)
	return h.pageOf(ctx, rows, err)
}

func (h *held) pageInForce(ctx context.Context, after int64) ([]changelog.Row, error) {
	rows, err := h.l.reads.QueryContext(context.WithoutCancel(ctx), `
		SELECT id, key, create_id, deleted, at, value, author, audit_id
		FROM log AS l NOT INDEXED
		WHERE id > ?1 AND id <= ?2 AND deleted = 0
		  AND NOT EXISTS (SELECT 1 FROM log AS n WHERE n.key = l.key AND n.id > l.id AND n.id <= ?2)
		ORDER BY id
		LIMIT ?3`, after, h.head.Revision, heldRows)
	return h.pageOf(ctx, rows, err)
}

// pageOf returns rows until there are enough bytes. They are valid until the next page.
func (h *held) pageOf(ctx context.Context, rows *sql.Rows, err error) ([]changelog.Row, error) {
	h.rows, h.bytes = h.rows[:0], h.bytes[:0]
	err = scan.EachRow(ctx, func(r *changelog.Row) error {
		h.bytes = append(h.bytes, r.Value...)
		h.rows = append(h.rows, *r)
		if last := &h.rows[len(h.rows)-1]; r.AuditID != nil {
			last.AuditID = bytes.Clone(r.AuditID)
		}
		if len(h.bytes) >= heldBytes {
			return errEnough
		}
		return nil
	})(rows, err)
	if err == errEnough {
		err = nil
	}
	from := 0
	for i := range h.rows { // now that bytes stay where they are
		r := &h.rows[i]
		to := from + len(r.Value)
		r.Value = h.bytes[from:to:to]
		from = to
	}
	return h.rows, err
}

// Kept returns the table of that name.
func (h *held) Kept(context.Context) (map[string]int64, error) {
	if h.noKept != nil {
		return nil, fmt.Errorf("read what is kept: %w", h.noKept)
	}
	return h.kept, nil
}

// Old calls f with the rows of table past, which nobody changes meanwhile.
func (h *held) Old(ctx context.Context, f func(*changelog.OldRow) error) error {
	return eachPage(ctx, h, f, func(last *changelog.OldRow) ([]changelog.OldRow, error) { return h.oldPage(ctx, last.Revision) })
}

func (h *held) oldPage(ctx context.Context, after int64) (page []changelog.OldRow, err error) {
	size := 0
	err = scan.EachOld(ctx, func(r *changelog.OldRow) error {
		row := *r
		row.Value, row.AuditID = bytes.Clone(r.Value), bytes.Clone(r.AuditID)
		page = append(page, row)
		if size += len(r.Value); size >= heldBytes {
			return errEnough
		}
		return nil
	})(h.l.reads.QueryContext(context.WithoutCancel(ctx), `
		SELECT id, key, create_id, deleted, at, value, author, audit_id, until_id, until_at, expires
		FROM past NOT INDEXED
		WHERE id > ?
		ORDER BY id
		LIMIT ?`, after, heldRows))
	if err == errEnough {
		err = nil
	}
	return page, err
}

var errEnough = fmt.Errorf("enough rows for a page")

// Broken calls f with rows of table past without a successor. Successors do not go meanwhile.
func (h *held) Broken(ctx context.Context, f func(*changelog.Row) error) error {
	var found []changelog.Row
	err := scan.EachKey(ctx, func(r *changelog.Row) error {
		found = append(found, *r)
		return nil
	})(h.l.reads.QueryContext(context.WithoutCancel(ctx), brokenSQL))
	if err == nil {
		err = h.check(ctx)
	}
	if err != nil {
		return fmt.Errorf("read old versions: %w", damage(err))
	}
	for i := range found {
		if err := f(&found[i]); err != nil {
			return err
		}
	}
	return nil
}

// Told counts what the view history has up to the revision.
func (h *held) Told(ctx context.Context) (changes, revisions int64, err error) {
	err = h.l.reads.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(revision), 0) FROM history WHERE revision <= ?`, h.head.Revision).Scan(&changes, &revisions)
	if err != nil {
		return 0, 0, fmt.Errorf("read the view history: %w", damage(err))
	}
	return changes, revisions, nil
}

// Shown counts what the view shows. The view knows no revision: so what it shows now is compared with
// what is in force now, and the difference is what it lacks, or has too much.
func (h *held) Shown(ctx context.Context) (objects, versions int64, err error) {
	tx, err := h.l.reads.BeginTx(ctx, nil)
	if err != nil {
		return 0, 0, fmt.Errorf("read the view objects: %w", damage(err))
	}
	defer func() { _ = tx.Rollback() }() // it only reads
	var shown, sum int64
	err = tx.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(resource_version), 0) FROM objects`).Scan(&shown, &sum)
	if err == nil {
		err = h.inForce(ctx, tx, h.head.Revision, &objects, &versions)
	}
	var now, sumNow int64
	if err == nil {
		err = h.inForce(ctx, tx, 1<<62, &now, &sumNow)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read the view objects: %w", damage(err))
	}
	return objects + shown - now, versions + sum - sumNow, nil
}

// inForce counts the rows in force at a revision.
func (h *held) inForce(ctx context.Context, tx *sql.Tx, revision int64, objects, versions *int64) error {
	return tx.QueryRowContext(ctx, `
		SELECT count(*), coalesce(sum(id), 0)
		FROM log AS l
		WHERE id <= ?1 AND deleted = 0
		  AND NOT EXISTS (SELECT 1 FROM log AS n WHERE n.key = l.key AND n.id > l.id AND n.id <= ?1)`, revision).Scan(objects, versions)
}
