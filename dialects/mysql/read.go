package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/plinth-io/plinth/dialects/internal/poll"
	"github.com/plinth-io/plinth/dialects/internal/scan"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Reads of the past fetch their rows first and the floor after them. The floor only
// rises, and rises in the transaction that deletes: if it still permits the revision
// then nothing was missing when the rows were read.

const readEnd = `
		SELECT (SELECT CAST(value AS SIGNED) FROM meta WHERE name = 'floor'),
		       COALESCE((SELECT MAX(id) FROM log), 0),
		       (SELECT ` + "`at`" + ` FROM log WHERE id = ?)`

// scanEnd reads the answer of readEnd: the end of the log, and the time of the row asked for, nil if it
// is not there.
func scanEnd(scan func(...any) error) (h changelog.Head, seen *int64, err error) {
	err = scan(&h.Floor, &h.Revision, &seen)
	h.Revision = max(h.Revision, h.Floor)
	return h, seen, err
}

// Head reads the end of the log.
func (l reader) Head(ctx context.Context) (changelog.Head, error) {
	w := l.witness.Load()
	h, seen, err := scanEnd(l.db.QueryRowContext(ctx, readEnd, w.Row()).Scan)
	if err == nil {
		err = w.Check(h, seen)
	}
	if err != nil {
		return changelog.Head{}, fmt.Errorf("read head: %w", l.classify(err))
	}
	return h, nil
}

// Follow polls: the server has no way to say that there is news.
func (l *database) Follow(ctx context.Context, f changelog.Follower) {
	if f.Polls != nil {
		f.Polls(true)
	}
	p := poll.Poller{
		Follower: f,
		Head: func(ctx context.Context) (int64, error) {
			h, err := reader{l}.Head(ctx)
			if errors.Is(err, changelog.ErrSetBack) {
				f.Hint(0)
			}
			return h.Revision, err
		},
	}
	p.Run(ctx)
}

// checkFloor refuses a revision that is compacted, and a log that is not the one expected. It comes
// after what was read: if it is the same log now, it was then.
func (l reader) checkFloor(ctx context.Context, revision int64) error {
	h, err := l.Head(ctx)
	if err == nil && revision < h.Floor {
		return changelog.ErrCompacted
	}
	return err
}

// readKnown runs query, lets scan read its rows and then, in the same round trip, compares the log with
// what is expected of it.
func (l *database) readKnown(ctx context.Context, check func(w *changelog.Witness, now changelog.Head, seen *int64) error,
	scan func(*sql.Rows) error, query string, args ...any) error {
	w := l.witness.Load()
	rows, err := l.db.QueryContext(ctx, query+`; `+readEnd, append(args, w.Row())...)
	if err != nil {
		return err
	}
	defer rows.Close()
	if err := scan(rows); err != nil {
		return err
	}
	if !rows.NextResultSet() {
		return missing(rows)
	}
	now, seen, err := scanEnd(func(into ...any) error { return scanOne(rows, true, into...) })
	if err != nil {
		return err
	}
	return check(w, now, seen)
}

// Rows returns rows after a revision in revision order. They are durable.
func (l reader) Rows(ctx context.Context, after int64, limit int) ([]changelog.Row, error) {
	read := l.rows
	if l.kind == changelog.KindEtcd {
		read = l.rawRows
	}
	rows, err := read(ctx, after, limit)
	if err = l.settleRows(ctx, rows, err); err != nil {
		return nil, fmt.Errorf("read rows: %w", l.classify(err))
	}
	return rows, nil
}

func (l reader) rows(ctx context.Context, after int64, limit int) (out []changelog.Row, err error) {
	err = l.readKnown(ctx, (*changelog.Witness).CheckRows, func(rows *sql.Rows) (err error) {
		out, err = scan.NextRows(rows)
		return err
	}, "SELECT id, `key`, create_id, deleted, `at`, value"+`
		FROM log
		WHERE id > ?
		ORDER BY id
		LIMIT ?`, after, limit)
	return out, err
}

// State returns the rows in force at a revision. They are durable.
func (l reader) State(ctx context.Context, from, to string, revision int64, limit int) ([]changelog.Row, error) {
	read := l.state
	if l.kind == changelog.KindEtcd {
		read = l.rawState
	}
	rows, err := read(ctx, from, to, revision, limit)
	if err == nil {
		err = l.checkFloor(ctx, revision)
	}
	if err == nil {
		err = l.settle(ctx, revision)
	}
	if err != nil {
		return nil, fmt.Errorf("read state: %w", l.classify(err))
	}
	return rows, nil
}

// state walks the index (key, id) as far as the limit asks, and fetches only rows that are the
// last of their key.
func (l reader) state(ctx context.Context, from, to string, revision int64, limit int) ([]changelog.Row, error) {
	return l.page(ctx, scan.NextRows, `
		SELECT STRAIGHT_JOIN l.id, l.`+"`key`, l.create_id, l.deleted, l.`at`, l.value"+`
		FROM log AS k FORCE INDEX (log_key_id)
		JOIN log AS l ON l.id = k.id
		WHERE k.`+"`key` >= ? AND k.`key`"+` < ? AND k.id <= ?
		  AND k.id = (SELECT n.id FROM log AS n
		              WHERE n.`+"`key` = k.`key`"+` AND n.id <= ?
		              ORDER BY n.id DESC LIMIT 1)
		  AND l.deleted = 0
		ORDER BY k.`+"`key`"+`
		LIMIT ?`, []byte(from), []byte(to), revision, revision, limit)
}

// page runs a query for rows and lets scan read them. If they have PageBytes the connection ends, because the
// server would send the others of the page, too.
func (l reader) page(ctx context.Context, scan func(*sql.Rows) ([]changelog.Row, error), query string, args ...any) ([]changelog.Row, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	rows, err := l.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out, err := scan(rows)
	if err == nil && changelog.Heavy(out) {
		stop()
	}
	return out, err
}

// Count returns how many rows State would return.
func (l reader) Count(ctx context.Context, from, to string, revision int64) (int64, error) {
	var n int64
	err := l.db.QueryRowContext(ctx, `
		SELECT STRAIGHT_JOIN COUNT(*)
		FROM log AS k FORCE INDEX (log_key_id)
		JOIN log AS l ON l.id = k.id
		WHERE k.`+"`key` >= ? AND k.`key`"+` < ? AND k.id <= ?
		  AND k.id = (SELECT n.id FROM log AS n
		              WHERE n.`+"`key` = k.`key`"+` AND n.id <= ?
		              ORDER BY n.id DESC LIMIT 1)
		  AND l.deleted = 0`, []byte(from), []byte(to), revision, revision).Scan(&n)
	if err == nil {
		err = l.checkFloor(ctx, revision)
	}
	if err != nil {
		return 0, fmt.Errorf("count state: %w", l.classify(err))
	}
	return n, nil
}

// Steps returns changes with what they replaced.
func (l reader) Steps(ctx context.Context, from, to string, after, through int64, limit int) ([]changelog.Step, error) {
	read := l.steps
	if l.kind == changelog.KindEtcd {
		read = l.rawSteps
	}
	steps, err := read(ctx, from, to, after, through, limit)
	if err == nil {
		err = l.checkFloor(ctx, after)
	}
	if err != nil {
		return nil, fmt.Errorf("read steps: %w", l.classify(err))
	}
	return steps, nil
}

func (l reader) steps(ctx context.Context, from, to string, after, through int64, limit int) ([]changelog.Step, error) {
	return scan.Steps(l.db.QueryContext(ctx, `
		SELECT l.id, l.`+"`key`, l.create_id, l.deleted, l.`at`, l.value, p.id, p.create_id, p.`at`, p.value"+`
		FROM log AS l FORCE INDEX (PRIMARY)
		LEFT JOIN log AS p
		       ON p.id = (SELECT o.id FROM log AS o
		                  WHERE o.`+"`key` = l.`key`"+` AND o.id < l.id
		                  ORDER BY o.id DESC LIMIT 1)
		      AND p.deleted = 0
		WHERE l.id > ? AND l.id <= ? AND l.`+"`key` >= ? AND l.`key`"+` < ?
		ORDER BY l.id
		LIMIT ?`, after, through, []byte(from), []byte(to), limit))
}

// Time returns the oldest row at or after a revision.
func (l reader) Time(ctx context.Context, revision int64) (found, at int64, err error) {
	err = l.db.QueryRowContext(ctx, `
		(SELECT id, `+"`at`"+` FROM log WHERE id >= ? ORDER BY id LIMIT 1)
		UNION ALL
		(SELECT id, `+"`at`"+` FROM past WHERE id >= ? ORDER BY id LIMIT 1)
		ORDER BY id
		LIMIT 1`, revision, revision).Scan(&found, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read time: %w", l.classify(err))
	}
	return found, at, nil
}
