package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"sync"

	"github.com/plinth-io/plinth/dialects/internal/scan"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// frozen is a transaction that reads, beside the process that has the database. SQLite keeps what it sees
// in the write-ahead log, which grows until the transaction ends.
type frozen struct {
	conn *sql.Conn
	pages
}

// Freeze calls f with the log as it is now. Close ends it.
func (l source) Freeze(ctx context.Context, f func(changelog.Frozen) error) error {
	l.freezing.Add(1)
	defer l.freezing.Done()
	var beside sync.WaitGroup
	defer beside.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	beside.Go(func() {
		select {
		case <-l.closed:
			cancel()
		case <-ctx.Done():
		}
	})
	if l.peeks {
		return classify(l.freeze(ctx, f))
	}
	return classify(l.hold(ctx, f))
}

func (l source) freeze(ctx context.Context, f func(changelog.Frozen) error) error {
	conn, err := l.reads.Conn(ctx)
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `BEGIN`); err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`) }()
	return f(&frozen{conn, pages{from: conn, through: math.MaxInt64}})
}

// Head is the end of the log.
func (z *frozen) Head(ctx context.Context) (h changelog.Head, err error) {
	err = z.conn.QueryRowContext(ctx, `
		SELECT (SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'floor'),
		       coalesce((SELECT max(id) FROM log), 0)`).Scan(&h.Floor, &h.Revision)
	if err != nil {
		return h, fmt.Errorf("read head: %w", damage(err))
	}
	h.Revision = max(h.Revision, h.Floor)
	return h, nil
}

// Meta returns the table of that name.
func (z *frozen) Meta(ctx context.Context) (map[string]string, error) {
	meta, err := scan.Marks(z.conn.QueryContext(ctx, `SELECT name, value FROM meta`))
	if err != nil {
		return nil, fmt.Errorf("read meta: %w", damage(err))
	}
	return meta, nil
}

// Writers calls f with all authors.
func (z *frozen) Writers(ctx context.Context, f func(number int64, a changelog.Author) error) error {
	return scan.EachAuthor(f)(z.conn.QueryContext(ctx, `
		SELECT id, who, impersonator, verb, subresource, manager FROM author ORDER BY id`))
}

// All calls f with rows in order of their ids. The driver would start a goroutine for each row if the
// context could end.
func (z *frozen) All(ctx context.Context, inForce bool, f func(*changelog.Row) error) error {
	whole := context.WithoutCancel(ctx)
	if inForce {
		return scan.EachRow(ctx, f)(z.conn.QueryContext(whole, `
			SELECT id, key, create_id, deleted, at, value, author, audit_id
			FROM log AS l NOT INDEXED
			WHERE deleted = 0
			  AND NOT EXISTS (SELECT 1 FROM log AS n WHERE n.key = l.key AND n.id > l.id)
			ORDER BY id`))
	}
	return scan.EachRow(ctx, f)(z.conn.QueryContext(whole, `
		SELECT id, key, create_id, deleted, at, value, author, audit_id
		FROM log NOT INDEXED
		ORDER BY id`))
}

// Kept returns the table of that name.
func (z *frozen) Kept(ctx context.Context) (map[string]int64, error) {
	return scan.Kept(z.conn.QueryContext(ctx, `SELECT prefix, lost FROM kept`))
}

// Old calls f with the rows of table past.
func (z *frozen) Old(ctx context.Context, f func(*changelog.OldRow) error) error {
	return scan.EachOld(ctx, f)(z.conn.QueryContext(context.WithoutCancel(ctx), `
		SELECT id, key, create_id, deleted, at, value, author, audit_id, until_id, until_at, expires
		FROM past NOT INDEXED
		ORDER BY id`))
}

const brokenSQL = `
	SELECT p.id, p.key
	FROM past AS p NOT INDEXED
	WHERE p.deleted = 0
	  AND NOT EXISTS (SELECT 1 FROM log AS n WHERE n.id = p.until_id AND n.key = p.key)
	  AND NOT EXISTS (SELECT 1 FROM past AS n WHERE n.id = p.until_id AND n.key = p.key)
	ORDER BY p.id`

// Broken calls f with rows of table past without a successor.
func (z *frozen) Broken(ctx context.Context, f func(*changelog.Row) error) error {
	return scan.EachKey(ctx, f)(z.conn.QueryContext(context.WithoutCancel(ctx), brokenSQL))
}

// Told counts what the view history has.
func (z *frozen) Told(ctx context.Context) (changes, revisions int64, err error) {
	err = z.conn.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(revision), 0) FROM history`).Scan(&changes, &revisions)
	if err != nil {
		return 0, 0, fmt.Errorf("read the view history: %w", damage(err))
	}
	return changes, revisions, nil
}

// Shown counts what the view shows.
func (z *frozen) Shown(ctx context.Context) (objects, versions int64, err error) {
	err = z.conn.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(resource_version), 0) FROM objects`).Scan(&objects, &versions)
	if err != nil {
		return 0, 0, fmt.Errorf("read the view objects: %w", damage(err))
	}
	return objects, versions, nil
}
