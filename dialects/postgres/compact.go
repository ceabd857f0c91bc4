package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Compact sweeps the next rows and moves the floor over them. The row of meta that says
// how far the sweep came is the compactors' lock. The write lock is taken last, for
// moving the floor, so writers go on while rows are deleted.
func (l compaction) Compact(ctx context.Context, through int64, limit int, retention *changelog.Retention) (changelog.Compacted, error) {
	var c changelog.Compacted
	err := pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
		c, err = compact(ctx, tx, through, limit, retention)
		return err
	})
	if err != nil {
		return changelog.Compacted{}, fmt.Errorf("compact: %w", l.classify(err))
	}
	return c, nil
}

func compact(ctx context.Context, tx pgx.Tx, through int64, limit int, retention *changelog.Retention) (c changelog.Compacted, err error) {
	if c.Swept, c.Busy, err = lockSweep(ctx, tx); err != nil {
		return c, err
	}
	var newest, since int64
	err = tx.QueryRow(ctx, `
		SELECT (SELECT value::bigint FROM meta WHERE name = 'floor'),
		       coalesce((SELECT max(id) FROM log), 0),
		       coalesce((SELECT lost FROM kept WHERE prefix = ''), -1)`).Scan(&c.Floor, &newest, &since)
	through = min(through, newest-1)
	if err != nil || c.Busy || through <= c.Swept {
		return c, err
	}
	upto, err := stepEnd(ctx, tx, c.Swept, through, limit)
	if err != nil {
		return c, err
	}
	if err := useRetention(ctx, tx, retention, since, c.Floor); err != nil {
		return c, err
	}
	if retention != nil {
		if c.Kept, err = move(ctx, tx, c.Swept, upto, retention); err != nil {
			return c, err
		}
	}
	if c.Deleted, err = sweep(ctx, tx, c.Swept, upto); err != nil {
		return c, err
	}
	if err := noteSwept(ctx, tx, c.Swept, upto, retention); err != nil {
		return c, err
	}
	c.Swept = upto
	err = tx.QueryRow(ctx, `
		UPDATE meta SET value = greatest(value::bigint, $1::bigint)::text
		WHERE name = 'floor'
		RETURNING value::bigint`, upto).Scan(&c.Floor)
	return c, err
}

// noteSwept notes how far the sweep came. If the bytes of past were known before, they still are, unless
// nothing moves there any more.
func noteSwept(ctx context.Context, tx pgx.Tx, before, now int64, retention *changelog.Retention) error {
	_, err := tx.Exec(ctx, `
		UPDATE meta SET value = $2::bigint::text
		WHERE name = 'swept' OR name = 'past_swept' AND value = $1::bigint::text AND $3`, before, now, retention != nil)
	return err
}

// sweep deletes what the rows in (swept, upto] superseded, then tombstones among them.
// Each row takes its predecessor with it: older ones went when the predecessor was swept,
// so the cost does not depend on how long a key's history is.
func sweep(ctx context.Context, tx pgx.Tx, swept, upto int64) (int64, error) {
	superseded, err := supersede(ctx, tx, swept, upto)
	if err != nil {
		return 0, err
	}
	tombstones, err := tx.Exec(ctx, `DELETE FROM log WHERE id > $1 AND id <= $2 AND deleted`, swept, upto)
	return superseded + tombstones.RowsAffected(), err
}

// stepEnd returns where a step ends that looks at limit rows after an id, but for those above through.
func stepEnd(ctx context.Context, tx pgx.Tx, after, through int64, limit int) (upto int64, err error) {
	err = tx.QueryRow(ctx, `
		SELECT CASE WHEN count(*) = $3 THEN max(id) ELSE $2::bigint END
		FROM (SELECT id FROM log WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3::bigint) AS next`,
		after, through, limit).Scan(&upto)
	return upto, err
}

// supersede deletes the predecessors of the rows in (after, upto].
func supersede(ctx context.Context, tx pgx.Tx, after, upto int64) (int64, error) {
	deleted, err := tx.Exec(ctx, `
		DELETE FROM log WHERE id = ANY (ARRAY(
			SELECT p.id
			FROM log AS l
			CROSS JOIN LATERAL (
				SELECT o.id FROM log AS o
				WHERE o.key = l.key AND o.id < l.id
				ORDER BY o.id DESC LIMIT 1) AS p
			WHERE l.id > $1 AND l.id <= $2))`, after, upto)
	return deleted.RowsAffected(), err
}

// Supersede deletes the next predecessors. The compactors' lock is that of Compact.
func (l compaction) Supersede(ctx context.Context, after, through int64, limit int) (changelog.Compacted, error) {
	c := changelog.Compacted{Swept: after}
	err := pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		_, busy, err := lockSweep(ctx, tx)
		if c.Busy = busy; err != nil || busy {
			return err
		}
		err = tx.QueryRow(ctx, `SELECT value::bigint FROM meta WHERE name = 'floor'`).Scan(&c.Floor)
		end := min(through, c.Floor)
		if err != nil || end <= after {
			return err
		}
		if c.Swept, err = stepEnd(ctx, tx, after, end, limit); err != nil {
			return err
		}
		c.Deleted, err = supersede(ctx, tx, after, c.Swept)
		return err
	})
	if err != nil {
		return changelog.Compacted{}, fmt.Errorf("compact: %w", l.classify(err))
	}
	return c, nil
}

// lockSweep takes the compactors' lock until tx ends, if it is free, and returns how far was swept.
func lockSweep(ctx context.Context, tx pgx.Tx) (swept int64, busy bool, err error) {
	err = tx.QueryRow(ctx, `SELECT value::bigint FROM meta WHERE name = 'swept' FOR UPDATE SKIP LOCKED`).Scan(&swept)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, true, nil
	}
	return swept, false, err
}

// Defragment makes the table anew. What was deleted is only marked until then, or until autovacuum
// comes by, which gives nothing back but the table's end.
func (l compaction) Defragment(ctx context.Context) error {
	var may bool // else the server warns only
	err := l.pool.QueryRow(ctx, `
		SELECT CASE WHEN pg_has_role(relowner, 'USAGE') THEN true
		            WHEN current_setting('server_version_num')::int >= 170000 THEN has_table_privilege(oid, 'MAINTAIN')
		            ELSE false END
		FROM pg_class WHERE oid = 'log'::regclass`).Scan(&may)
	if err != nil {
		return fmt.Errorf("defragment: %w", l.classify(err))
	}
	if !may {
		return errors.New("defragment: only the owner of the table may do that in Postgres: let him run VACUUM (FULL) log")
	}
	if _, err := l.pool.Exec(ctx, `VACUUM (FULL) log`); err != nil {
		return fmt.Errorf("defragment: %w", l.classify(err))
	}
	return nil
}

// Raise lifts the floor above everything the log has. The write lock comes first, so
// that the highest id is final.
func (l appender) Raise(ctx context.Context, revision int64) error {
	err := pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT FROM meta WHERE name = 'floor' FOR UPDATE`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `
			UPDATE meta SET value = $1::bigint::text
			WHERE name = 'floor' AND value::bigint < $1
			  AND coalesce((SELECT max(id) FROM log), 0) < $1`, revision)
		return err
	})
	if err != nil {
		return fmt.Errorf("raise floor: %w", l.classify(err))
	}
	return nil
}
