package mysql

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/plinth-io/plinth/dialects/internal/raw"
	"github.com/plinth-io/plinth/dialects/internal/scan"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// The clock of leases is the server's, without the zone of the session, whose hours may come
// twice. Whoever locks several leases does so in order of their ids, so that nobody waits in a
// circle.

const readClock = `SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000`

// Leases returns leases and the time.
func (l leases) Leases(ctx context.Context, ids []int64) (leases []changelog.Lease, now int64, err error) {
	if ids == nil {
		leases, now, err = l.readLeases(ctx, `SELECT id, ttl, expires FROM lease ORDER BY id`)
	} else {
		leases, now, err = l.someLeases(ctx, ids)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read leases: %w", l.classify(err))
	}
	return leases, now, nil
}

func (l leases) someLeases(ctx context.Context, ids []int64) (leases []changelog.Lease, now int64, err error) {
	if len(ids) == 0 {
		err = l.db.QueryRowContext(ctx, readClock).Scan(&now)
		return nil, now, err
	}
	for chunk := range slices.Chunk(ids, idsChunk) {
		var some []changelog.Lease
		some, now, err = l.readLeases(ctx, `SELECT id, ttl, expires FROM lease WHERE id IN `+places(len(chunk)), idArgs(chunk)...)
		if err != nil {
			return nil, 0, err
		}
		leases = append(leases, some...)
	}
	slices.SortFunc(leases, func(a, b changelog.Lease) int { return cmp.Compare(a.ID, b.ID) })
	return leases, now, nil
}

// readLeases runs a query for leases, and reads the time before it.
func (l leases) readLeases(ctx context.Context, query string, args ...any) (leases []changelog.Lease, now int64, err error) {
	rows, err := l.db.QueryContext(ctx, readClock+`; `+query, args...)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	if err := scanOne(rows, true, &now); err != nil {
		return nil, 0, err
	}
	if !rows.NextResultSet() {
		return nil, 0, missing(rows)
	}
	leases, err = scan.NextLeases(rows)
	return leases, now, err
}

// Renew makes leases that have not expired expire their TTL from now.
func (l leases) Renew(ctx context.Context, ids []int64) (renewed []changelog.Lease, err error) {
	ids = slices.Sorted(slices.Values(ids))
	for chunk := range slices.Chunk(ids, idsChunk) {
		var some []changelog.Lease
		err := l.again(ctx, func() error {
			return l.transact(ctx, func(tx *txn) (err error) {
				some, err = renew(ctx, tx, chunk)
				return err
			})
		})
		if err != nil {
			return nil, fmt.Errorf("renew leases: %w", l.classify(err))
		}
		renewed = append(renewed, some...)
	}
	return renewed, nil
}

// renew reads the time when the leases are locked.
func renew(ctx context.Context, tx *txn, ids []int64) ([]changelog.Lease, error) {
	leases, now, err := lockLeases(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	leases = slices.DeleteFunc(leases, func(l changelog.Lease) bool { return l.Expires <= now })
	if len(leases) == 0 {
		return nil, nil
	}
	alive := make([]any, 0, len(leases)+1)
	alive = append(alive, now)
	for i := range leases {
		leases[i].Expires = now + leases[i].TTL*1000
		alive = append(alive, leases[i].ID)
	}
	_, err = tx.ExecContext(ctx, `UPDATE lease SET expires = ? + ttl * 1000 WHERE id IN `+places(len(leases)), alive...)
	return leases, err
}

// lockLeases locks leases and reads the time then: in one packet, but at a Galera cluster (packet.go).
func lockLeases(ctx context.Context, tx *txn, ids []int64) (leases []changelog.Lease, now int64, err error) {
	if tx.galera {
		rows, err := tx.QueryContext(ctx, `SELECT id, ttl, expires FROM lease WHERE id IN `+places(len(ids))+` ORDER BY id FOR UPDATE`, idArgs(ids)...)
		if err != nil {
			return nil, 0, err
		}
		defer rows.Close()
		if leases, err = scan.NextLeases(rows); err != nil {
			return nil, 0, err
		}
		rows.Close()
		err = tx.QueryRowContext(ctx, readClock).Scan(&now)
		return leases, now, err
	}
	rows, err := tx.QueryContext(ctx, `
		SELECT id, ttl, expires FROM lease WHERE id IN `+places(len(ids))+` ORDER BY id FOR UPDATE;
		`+readClock, idArgs(ids)...)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	if leases, err = scan.NextLeases(rows); err != nil {
		return nil, 0, err
	}
	err = scanOne(rows, rows.NextResultSet(), &now)
	return leases, now, err
}

// Expired returns leases that have expired, and when the next one does.
func (l leases) Expired(ctx context.Context, limit int) (ids []int64, next int64, err error) {
	leases, now, err := l.readLeases(ctx, `SELECT id, ttl, expires FROM lease ORDER BY expires, id LIMIT ?`, max(1, limit))
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
		return l.transact(ctx, func(tx *txn) (err error) {
			shifted, err = beat(ctx, tx, most)
			return err
		})
	})
	if err != nil {
		return 0, fmt.Errorf("note that leases are watched over: %w", l.classify(err))
	}
	return shifted, nil
}

func beat(ctx context.Context, tx *txn, most int64) (shifted int64, err error) {
	var last, now int64
	err = tx.QueryRowContext(ctx, `SELECT CAST(value AS SIGNED) FROM meta WHERE name = 'lease_beat' FOR UPDATE`).Scan(&last)
	if err == nil {
		err = tx.QueryRowContext(ctx, readClock).Scan(&now)
	}
	if err != nil {
		return 0, err
	}
	if shifted = raw.Missed(last, now, most); shifted != 0 {
		if _, err := tx.ExecContext(ctx, `UPDATE lease SET expires = expires + ? ORDER BY id`, shifted); err != nil {
			return 0, err
		}
	}
	_, err = tx.ExecContext(ctx, `UPDATE meta SET value = ? WHERE name = 'lease_beat'`, now)
	return shifted, err
}
