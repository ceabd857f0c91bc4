package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"github.com/plinth-io/plinth/dialects/internal/scan"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// frozen is a connection whose transaction sees one snapshot. What it sees is not purged until it ends.
type frozen struct {
	l    *database
	conn *sql.Conn
}

// Freeze calls f with the log as it is now, on a connection that the pool does not miss. The server sends
// rows as they are asked for, so it has to have patience with f.
func (l source) Freeze(ctx context.Context, f func(changelog.Frozen) error) error {
	db := sql.OpenDB(l.freezer)
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("read the log: %w", l.classify(err))
	}
	defer conn.Close()
	_, err = conn.ExecContext(ctx, `
		SET SESSION net_write_timeout = 600;
		SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
		START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY`)
	if err == nil {
		err = l.settleFrozen(ctx, conn)
	}
	if err != nil {
		return fmt.Errorf("read the log: %w", l.classify(err))
	}
	return l.classify(f(&frozen{l.database, conn}))
}

// settleFrozen makes sure that what the snapshot has is durable, unless this log must not write.
func (l source) settleFrozen(ctx context.Context, conn *sql.Conn) error {
	if l.peeks {
		return nil
	}
	head, err := (&frozen{l.database, conn}).Head(ctx)
	if err != nil {
		if passes(err) {
			return err
		}
		return nil // f will find that out
	}
	return l.settle(ctx, head.Revision)
}

// Head is the end of the log.
func (z *frozen) Head(ctx context.Context) (h changelog.Head, err error) {
	err = z.conn.QueryRowContext(ctx, `
		SELECT (SELECT CAST(value AS SIGNED) FROM meta WHERE name = 'floor'),
		       COALESCE((SELECT MAX(id) FROM log), 0)`).Scan(&h.Floor, &h.Revision)
	if err != nil {
		return h, fmt.Errorf("read head: %w", z.l.damage(err))
	}
	h.Revision = max(h.Revision, h.Floor)
	return h, nil
}

// Meta returns the table of that name.
func (z *frozen) Meta(ctx context.Context) (map[string]string, error) {
	meta, err := scan.Marks(z.conn.QueryContext(ctx, `SELECT name, value FROM meta`))
	if err != nil {
		return nil, fmt.Errorf("read meta: %w", z.l.damage(err))
	}
	return meta, nil
}

// Writers calls f with all authors.
func (z *frozen) Writers(ctx context.Context, f func(number int64, a changelog.Author) error) error {
	return z.l.damage(scan.EachAuthor(f)(z.conn.QueryContext(ctx, `
		SELECT id, who, impersonator, verb, subresource, manager FROM author ORDER BY id`)))
}

// All calls f with rows in order of their ids.
func (z *frozen) All(ctx context.Context, inForce bool, f func(*changelog.Row) error) error {
	if inForce {
		return scan.EachRow(ctx, f)(z.conn.QueryContext(ctx, "SELECT id, `key`, create_id, deleted, `at`, value, author, audit_id"+`
			FROM log AS l FORCE INDEX (PRIMARY)
			WHERE deleted = 0
			  AND id = (SELECT n.id FROM log AS n FORCE INDEX (log_key_id)
			            WHERE n.`+"`key` = l.`key`"+`
			            ORDER BY n.id DESC LIMIT 1)
			ORDER BY id`))
	}
	return scan.EachRow(ctx, f)(z.conn.QueryContext(ctx, "SELECT id, `key`, create_id, deleted, `at`, value, author, audit_id"+`
		FROM log FORCE INDEX (PRIMARY)
		ORDER BY id`))
}

// Kept returns the table of that name.
func (z *frozen) Kept(ctx context.Context) (map[string]int64, error) {
	kept, err := scan.Kept(z.conn.QueryContext(ctx, `SELECT prefix, lost FROM kept`))
	return kept, z.l.damage(err)
}

// Old calls f with the rows of table past.
func (z *frozen) Old(ctx context.Context, f func(*changelog.OldRow) error) error {
	return scan.EachOld(ctx, f)(z.conn.QueryContext(ctx, "SELECT id, `key`, create_id, deleted, `at`, value, author, audit_id, until_id, until_at, expires"+`
		FROM past FORCE INDEX (PRIMARY)
		ORDER BY id`))
}

// Broken calls f with rows of table past without a successor.
func (z *frozen) Broken(ctx context.Context, f func(*changelog.Row) error) error {
	return z.l.damage(scan.EachKey(ctx, f)(z.conn.QueryContext(ctx, "SELECT p.id, p.`key`"+`
		FROM past AS p FORCE INDEX (PRIMARY)
		WHERE NOT p.deleted
		  AND NOT EXISTS (SELECT 1 FROM log AS n WHERE n.id = p.until_id AND `+"n.`key` = p.`key`"+`)
		  AND NOT EXISTS (SELECT 1 FROM past AS n WHERE n.id = p.until_id AND `+"n.`key` = p.`key`"+`)
		ORDER BY p.id`)))
}

// Told counts what the view history has. The sum has another type than its summands.
func (z *frozen) Told(ctx context.Context) (changes, revisions int64, err error) {
	var sum string
	err = z.conn.QueryRowContext(ctx, `SELECT COUNT(*), COALESCE(SUM(revision), 0) FROM history`).Scan(&changes, &sum)
	if err == nil {
		revisions, err = strconv.ParseInt(sum, 10, 64)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read the view history: %w", z.l.damage(err))
	}
	return changes, revisions, nil
}

// Shown counts what the view shows. The sum has another type than its summands.
func (z *frozen) Shown(ctx context.Context) (objects, versions int64, err error) {
	var sum string
	err = z.conn.QueryRowContext(ctx, `SELECT COUNT(*), COALESCE(SUM(resource_version), 0) FROM objects`).Scan(&objects, &sum)
	if err == nil {
		versions, err = strconv.ParseInt(sum, 10, 64)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read the view objects: %w", z.l.damage(err))
	}
	return objects, versions, nil
}
