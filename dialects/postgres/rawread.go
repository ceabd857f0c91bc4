package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// The reads of a log of raw keys are those of read.go with two columns more, and with keys as
// rawkey.go has them.

func (l reader) rawRows(ctx context.Context, after int64, limit int) (out []changelog.Row, err error) {
	err = l.readKnown(ctx, (*changelog.Witness).CheckRows, func(rows pgx.Rows) (err error) {
		out, err = pgx.CollectRows(rows, scanRaw)
		return err
	}, `
		SELECT id, key, create_id, deleted, at, value, version, lease
		FROM log
		WHERE id > $1
		ORDER BY id
		LIMIT $2`, after, limit)
	return out, err
}

func (l reader) rawState(ctx context.Context, from, to string, revision int64, limit int) (out []changelog.Row, err error) {
	err = l.readPast(ctx, revision, func(rows pgx.Rows) (err error) {
		out, err = pgx.CollectRows(rows, scanRaw)
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
		SELECT id, key, create_id, deleted, at, value, version, lease
		FROM (SELECT *, sum(octet_length(value)) OVER (ROWS UNBOUNDED PRECEDING) AS bytes
		      FROM (SELECT l.*
		            FROM keys
		            CROSS JOIN LATERAL (
		            	SELECT * FROM log
		            	WHERE log.key = keys.key AND log.id <= $3
		            	ORDER BY log.id DESC LIMIT 1) AS l
		            WHERE NOT l.deleted
		            LIMIT $4) AS l) AS l
		WHERE bytes - octet_length(value) < $5`, encodeKey(from), encodeKey(to), revision, limit, changelog.PageBytes)
	return out, err
}

func (l reader) rawSteps(ctx context.Context, from, to string, after, through int64, limit int) (out []changelog.Step, err error) {
	err = l.readPast(ctx, after, func(rows pgx.Rows) (err error) {
		out, err = pgx.CollectRows(rows, scanRawStep)
		return err
	}, `
		SELECT l.id, l.key, l.create_id, l.deleted, l.at, l.value, l.version, l.lease,
		       p.id, p.create_id, p.at, p.value, p.version, p.lease
		FROM log AS l
		LEFT JOIN LATERAL (
			SELECT o.id, o.create_id, o.at, o.value, o.deleted, o.version, o.lease FROM log AS o
			WHERE o.key = l.key AND o.id < l.id
			ORDER BY o.id DESC LIMIT 1) AS p ON NOT p.deleted
		WHERE l.id > $1 AND l.id <= $2 AND l.key >= $3 AND l.key < $4
		ORDER BY l.id
		LIMIT $5`, after, through, encodeKey(from), encodeKey(to), limit)
	return out, err
}

// Keys is State without values.
func (l reader) Keys(ctx context.Context, from, to string, revision int64, limit int) (out []changelog.Row, err error) {
	err = l.readPast(ctx, revision, func(rows pgx.Rows) (err error) {
		out, err = pgx.CollectRows(rows, scanRawKey)
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
		SELECT l.id, l.key, l.create_id, l.deleted, l.at, l.version, l.lease
		FROM keys
		CROSS JOIN LATERAL (
			SELECT * FROM log
			WHERE log.key = keys.key AND log.id <= $3
			ORDER BY log.id DESC LIMIT 1) AS l
		WHERE NOT l.deleted
		LIMIT $4`, encodeKey(from), encodeKey(to), revision, limit)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", l.classify(err))
	}
	return out, nil
}

// valuesChunk is how many values one query reads.
const valuesChunk = 1000

// Values returns the values of rows by id.
func (l reader) Values(ctx context.Context, ids []int64) (map[int64][]byte, error) {
	values := make(map[int64][]byte, len(ids))
	for len(ids) > 0 {
		n := min(len(ids), valuesChunk)
		err := l.readKnown(ctx, (*changelog.Witness).Check, func(rows pgx.Rows) error {
			var id int64
			var value []byte
			_, err := pgx.ForEachRow(rows, []any{&id, &value}, func() error {
				values[id], value = value, nil
				return nil
			})
			return err
		}, `SELECT id, value FROM log WHERE id = ANY ($1::bigint[])`, ids[:n])
		if err != nil {
			return nil, fmt.Errorf("read values: %w", l.classify(err))
		}
		ids = ids[n:]
	}
	return values, nil
}

func scanRaw(row pgx.CollectableRow) (r changelog.Row, err error) {
	err = row.Scan(&r.Revision, &r.Key, &r.CreateRevision, &r.Deleted, &r.At, &r.Value, &r.Version, &r.Lease)
	r.Key = decodeKey(r.Key)
	return r, err
}

func scanRawKey(row pgx.CollectableRow) (r changelog.Row, err error) {
	err = row.Scan(&r.Revision, &r.Key, &r.CreateRevision, &r.Deleted, &r.At, &r.Version, &r.Lease)
	r.Key = decodeKey(r.Key)
	return r, err
}

func scanRawStep(row pgx.CollectableRow) (s changelog.Step, err error) {
	var id, created, at, version, lease *int64
	var value []byte
	err = row.Scan(&s.Revision, &s.Key, &s.CreateRevision, &s.Deleted, &s.At, &s.Value, &s.Version, &s.Lease,
		&id, &created, &at, &value, &version, &lease)
	s.Key = decodeKey(s.Key)
	if err == nil && id != nil {
		s.Prev = &changelog.Row{
			Revision: *id, Key: s.Key, CreateRevision: *created, At: *at, Value: value, Version: *version, Lease: *lease,
		}
	}
	return s, err
}
