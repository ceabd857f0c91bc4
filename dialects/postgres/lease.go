package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/plinth-io/plinth/dialects/internal/raw"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// The clock of leases is the server's. Whoever locks several leases does so in order of their
// ids, so that nobody waits in a circle.

const readClock = `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint`

// Leases returns leases and the time.
func (l leases) Leases(ctx context.Context, ids []int64) (leases []changelog.Lease, now int64, err error) {
	var b pgx.Batch
	b.Queue(readClock)
	if ids == nil {
		b.Queue(`SELECT id, ttl, expires FROM lease ORDER BY id`)
	} else {
		b.Queue(`SELECT id, ttl, expires FROM lease WHERE id = ANY ($1::bigint[]) ORDER BY id`, ids)
	}
	if leases, now, err = l.readLeases(ctx, &b); err != nil {
		return nil, 0, fmt.Errorf("read leases: %w", l.classify(err))
	}
	return leases, now, nil
}

// readLeases sends a query for the time and one for leases.
func (l leases) readLeases(ctx context.Context, b *pgx.Batch) (leases []changelog.Lease, now int64, err error) {
	r := l.pool.SendBatch(ctx, b)
	defer r.Close()
	if err := r.QueryRow().Scan(&now); err != nil {
		return nil, 0, err
	}
	rows, err := r.Query()
	if err != nil {
		return nil, 0, err
	}
	if leases, err = pgx.CollectRows(rows, scanLease); err != nil {
		return nil, 0, err
	}
	return leases, now, r.Close()
}

func scanLease(row pgx.CollectableRow) (l changelog.Lease, err error) {
	err = row.Scan(&l.ID, &l.TTL, &l.Expires)
	return l, err
}

// Renew makes leases that have not expired expire their TTL from now. The time is read when
// the leases are locked.
func (l leases) Renew(ctx context.Context, ids []int64) (renewed []changelog.Lease, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = l.again(ctx, func() error {
		rows, err := l.pool.Query(ctx, `
			WITH locked AS MATERIALIZED (
				SELECT id FROM lease WHERE id = ANY ($1::bigint[]) ORDER BY id FOR UPDATE
			), clock AS MATERIALIZED (
				SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now
				FROM (SELECT count(*) FROM locked) AS all_of_them
			)
			UPDATE lease SET expires = clock.now + ttl * 1000
			FROM locked, clock
			WHERE lease.id = locked.id AND lease.expires > clock.now
			RETURNING lease.id, lease.ttl, lease.expires`, ids)
		if err != nil {
			return err
		}
		renewed, err = pgx.CollectRows(rows, scanLease)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("renew leases: %w", l.classify(err))
	}
	return renewed, nil
}

// Expired returns leases that have expired, and when the next one does.
func (l leases) Expired(ctx context.Context, limit int) (ids []int64, next int64, err error) {
	var b pgx.Batch
	b.Queue(readClock)
	b.Queue(`SELECT id, ttl, expires FROM lease ORDER BY expires, id LIMIT $1`, max(1, limit))
	leases, now, err := l.readLeases(ctx, &b)
	if err != nil {
		return nil, 0, fmt.Errorf("read expired leases: %w", l.classify(err))
	}
	ids, next = raw.Due(leases, now)
	return ids, next, nil
}

// Beat notes the time. If nobody has done so for a while, all leases expire later. Of several
// processes that come back at once, the first one shifts them.
func (l leases) Beat(ctx context.Context, most int64) (shifted int64, err error) {
	err = l.again(ctx, func() error {
		return pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
			shifted, err = beat(ctx, tx, most)
			return err
		})
	})
	if err != nil {
		return 0, fmt.Errorf("note that leases are watched over: %w", l.classify(err))
	}
	return shifted, nil
}

func beat(ctx context.Context, tx pgx.Tx, most int64) (shifted int64, err error) {
	var last, now int64
	if err := tx.QueryRow(ctx, `SELECT value::bigint FROM meta WHERE name = 'lease_beat' FOR UPDATE`).Scan(&last); err != nil {
		return 0, err
	}
	if err := tx.QueryRow(ctx, readClock).Scan(&now); err != nil {
		return 0, err
	}
	if shifted = raw.Missed(last, now, most); shifted != 0 {
		if _, err := tx.Exec(ctx, `SELECT FROM lease ORDER BY id FOR UPDATE`); err != nil {
			return 0, err
		}
		if _, err := tx.Exec(ctx, `UPDATE lease SET expires = expires + $1`, shifted); err != nil {
			return 0, err
		}
	}
	_, err = tx.Exec(ctx, `UPDATE meta SET value = $1::bigint::text WHERE name = 'lease_beat'`, now)
	return shifted, err
}
