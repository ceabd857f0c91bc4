package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Reads of the past fetch their rows first and the floor after them, in one round trip.
// The floor only rises, and rises in the transaction that deletes: if it still permits
// the revision then nothing was missing when the rows were read.

const readEnd = `
		SELECT (SELECT value::bigint FROM meta WHERE name = 'floor'),
		       coalesce((SELECT max(id) FROM log), 0),
		       (SELECT at FROM log WHERE id = $1)`

// scanEnd reads the answer of readEnd: the end of the log, and the time of the row asked for, nil if it
// is not there.
func scanEnd(row pgx.Row) (h changelog.Head, seen *int64, err error) {
	err = row.Scan(&h.Floor, &h.Revision, &seen)
	h.Revision = max(h.Revision, h.Floor)
	return h, seen, err
}

// Head reads the end of the log.
func (l reader) Head(ctx context.Context) (changelog.Head, error) {
	w := l.witness.Load()
	h, seen, err := scanEnd(l.pool.QueryRow(ctx, readEnd, w.Row()))
	if err == nil {
		err = w.Check(h, seen)
	}
	if err != nil {
		return changelog.Head{}, fmt.Errorf("read head: %w", l.classify(err))
	}
	return h, nil
}

// Rows returns rows after a revision in revision order.
func (l reader) Rows(ctx context.Context, after int64, limit int) ([]changelog.Row, error) {
	read := l.rows
	if l.kind == changelog.KindEtcd {
		read = l.rawRows
	}
	out, err := read(ctx, after, limit)
	if err != nil {
		return nil, fmt.Errorf("read rows: %w", l.classify(err))
	}
	return out, nil
}

func (l reader) rows(ctx context.Context, after int64, limit int) (out []changelog.Row, err error) {
	err = l.readKnown(ctx, (*changelog.Witness).CheckRows, func(rows pgx.Rows) (err error) {
		out, err = pgx.CollectRows(rows, scanRow)
		return err
	}, `
		SELECT id, key, create_id, deleted, at, value
		FROM (SELECT *, sum(octet_length(value)) OVER (ROWS UNBOUNDED PRECEDING) AS bytes
		      FROM (SELECT * FROM log WHERE id > $1 ORDER BY id LIMIT $2) AS l) AS l
		WHERE bytes - octet_length(value) < $3`, after, limit, changelog.PageBytes)
	return out, err
}

// State returns the rows in force at a revision.
func (l reader) State(ctx context.Context, from, to string, revision int64, limit int) ([]changelog.Row, error) {
	read := l.state
	if l.kind == changelog.KindEtcd {
		read = l.rawState
	}
	out, err := read(ctx, from, to, revision, limit)
	if err != nil {
		return nil, fmt.Errorf("read state: %w", l.classify(err))
	}
	return out, nil
}

// state steps from key to key in the index
// (key, id) and takes the end of each key's history, so neither the length of histories
// nor the number of keys beyond the limit matters. The steps are made by recursion
// because the planner, which overestimates how selective the simpler queries are, sorts
// the whole range for those. Rows come in the order of the steps.
func (l reader) state(ctx context.Context, from, to string, revision int64, limit int) (out []changelog.Row, err error) {
	err = l.readPast(ctx, revision, func(rows pgx.Rows) (err error) {
		out, err = pgx.CollectRows(rows, scanRow)
		return err
	}, `
		WITH RECURSIVE keys AS (
			(SELECT key FROM log WHERE key >= $1 AND key < $2 ORDER BY key LIMIT 1)
			UNION ALL
			SELECT (SELECT n.key FROM log AS n
			        WHERE n.key > keys.key AND n.key < $2
			        ORDER BY n.key LIMIT 1)
			FROM keys
			WHERE keys.key IS NOT NULL
		)
		SELECT id, key, create_id, deleted, at, value
		FROM (SELECT *, sum(octet_length(value)) OVER (ROWS UNBOUNDED PRECEDING) AS bytes
		      FROM (SELECT l.*
		            FROM keys
		            CROSS JOIN LATERAL (
		            	SELECT * FROM log
		            	WHERE log.key = keys.key AND log.id <= $3
		            	ORDER BY log.id DESC LIMIT 1) AS l
		            WHERE NOT l.deleted
		            LIMIT $4) AS l) AS l
		WHERE bytes - octet_length(value) < $5`, bound(from), bound(to), revision, limit, changelog.PageBytes)
	return out, err
}

// Count returns how many rows State would return.
func (l reader) Count(ctx context.Context, from, to string, revision int64) (int64, error) {
	var n int64
	err := l.readPast(ctx, revision, func(rows pgx.Rows) (err error) {
		n, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
		return err
	}, `
		SELECT count(*)
		FROM (SELECT max(id) AS id
		      FROM log
		      WHERE key >= $1 AND key < $2 AND id <= $3
		      GROUP BY key) AS newest
		JOIN log AS l ON l.id = newest.id
		WHERE NOT l.deleted`, l.bound(from), l.bound(to), revision)
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
	out, err := read(ctx, from, to, after, through, limit)
	if err != nil {
		return nil, fmt.Errorf("read steps: %w", l.classify(err))
	}
	return out, nil
}

func (l reader) steps(ctx context.Context, from, to string, after, through int64, limit int) (out []changelog.Step, err error) {
	err = l.readPast(ctx, after, func(rows pgx.Rows) (err error) {
		out, err = pgx.CollectRows(rows, scanStep)
		return err
	}, `
		SELECT l.id, l.key, l.create_id, l.deleted, l.at, l.value, p.id, p.create_id, p.at, p.value
		FROM log AS l
		LEFT JOIN LATERAL (
			SELECT o.id, o.create_id, o.at, o.value, o.deleted FROM log AS o
			WHERE o.key = l.key AND o.id < l.id
			ORDER BY o.id DESC LIMIT 1) AS p ON NOT p.deleted
		WHERE l.id > $1 AND l.id <= $2 AND l.key >= $3 AND l.key < $4
		ORDER BY l.id
		LIMIT $5`, after, through, bound(from), bound(to), limit)
	return out, err
}

// Time returns the oldest row at or after a revision.
func (l reader) Time(ctx context.Context, revision int64) (found, at int64, err error) {
	err = l.pool.QueryRow(ctx, `
		(SELECT id, at FROM log WHERE id >= $1 ORDER BY id LIMIT 1)
		UNION ALL
		(SELECT id, at FROM past WHERE id >= $1 ORDER BY id LIMIT 1)
		ORDER BY id
		LIMIT 1`, revision).Scan(&found, &at)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read time: %w", l.classify(err))
	}
	return found, at, nil
}

// readPast runs query, lets scan read its rows and refuses a revision below the floor.
func (l reader) readPast(ctx context.Context, revision int64, scan func(pgx.Rows) error, query string, args ...any) error {
	check := func(w *changelog.Witness, now changelog.Head, seen *int64) error {
		if err := w.Check(now, seen); err != nil {
			return err
		}
		if revision < now.Floor {
			return changelog.ErrCompacted
		}
		return nil
	}
	return l.readKnown(ctx, check, scan, query, args...)
}

// readKnown runs query, lets scan read its rows and then, in the same round trip, compares the log with
// what is expected of it: if it is the same log now, it was when the rows were read.
func (l *database) readKnown(ctx context.Context, check func(w *changelog.Witness, now changelog.Head, seen *int64) error,
	scan func(pgx.Rows) error, query string, args ...any) error {
	w := l.witness.Load()
	var b pgx.Batch
	b.Queue(query, args...)
	b.Queue(readEnd, w.Row())
	r := l.pool.SendBatch(ctx, &b)
	defer r.Close()
	rows, err := r.Query()
	if err != nil {
		return err
	}
	if err := scan(rows); err != nil {
		return err
	}
	now, seen, err := scanEnd(r.QueryRow())
	if err != nil {
		return err
	}
	if err := check(w, now, seen); err != nil {
		return err
	}
	return r.Close()
}

func scanRow(row pgx.CollectableRow) (r changelog.Row, err error) {
	err = row.Scan(&r.Revision, &r.Key, &r.CreateRevision, &r.Deleted, &r.At, &r.Value)
	return r, err
}

func scanStep(row pgx.CollectableRow) (s changelog.Step, err error) {
	var id, created, at *int64
	var value []byte
	err = row.Scan(&s.Revision, &s.Key, &s.CreateRevision, &s.Deleted, &s.At, &s.Value, &id, &created, &at, &value)
	if err == nil && id != nil {
		s.Prev = &changelog.Row{Revision: *id, Key: s.Key, CreateRevision: *created, At: *at, Value: value}
	}
	return s, err
}
