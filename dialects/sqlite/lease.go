package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/plinth-io/plinth/dialects/internal/raw"
	"github.com/plinth-io/plinth/dialects/internal/scan"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// clock is the time of leases in milliseconds: this machine's when the log was opened, because no other process
// has the database, and what has passed since. Who sets the machine's clock meanwhile moves no lease.
func (l *database) clock() int64 {
	return l.opened.UnixMilli() + time.Since(l.opened).Milliseconds()
}

// Leases returns leases and the time.
func (l leases) Leases(ctx context.Context, ids []int64) (leases []changelog.Lease, now int64, err error) {
	if ids == nil {
		leases, err = scan.Leases(l.reads.QueryContext(ctx, `SELECT id, ttl, expires FROM lease ORDER BY id`))
	} else {
		leases, err = scan.Leases(l.reads.QueryContext(ctx, `
			SELECT id, ttl, expires FROM lease WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id`, list(ids)))
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read leases: %w", classify(err))
	}
	return leases, l.clock(), nil
}

// Renew makes leases that have not expired expire their TTL from now.
func (l leases) Renew(ctx context.Context, ids []int64) (renewed []changelog.Lease, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = l.transact(ctx, func(w *writer) error {
		now := l.clock()
		err := w.each(`
			UPDATE lease SET expires = ?1 + ttl * 1000
			WHERE id IN (SELECT value FROM json_each(?2)) AND expires > ?1
			RETURNING id, ttl, expires`, []any{now, list(ids)}, func(row []int64) {
			renewed = append(renewed, changelog.Lease{ID: row[0], TTL: row[1], Expires: row[2]})
		})
		if err != nil {
			return err
		}
		return w.turn()
	})
	if err != nil {
		return nil, fmt.Errorf("renew leases: %w", err)
	}
	return renewed, nil
}

// Expired returns leases that have expired, and when the next one does.
func (l leases) Expired(ctx context.Context, limit int) (ids []int64, next int64, err error) {
	leases, err := scan.Leases(l.reads.QueryContext(ctx, `
		SELECT id, ttl, expires FROM lease ORDER BY expires, id LIMIT ?`, max(1, limit)))
	if err != nil {
		return nil, 0, fmt.Errorf("read expired leases: %w", classify(err))
	}
	ids, next = raw.Due(leases, l.clock())
	return ids, next, nil
}

// Beat notes the time. If nobody has done so for a while, all leases expire later.
func (l leases) Beat(ctx context.Context, most int64) (shifted int64, err error) {
	err = l.transact(ctx, func(w *writer) error {
		now, last := l.clock(), int64(0)
		if err := w.scan(`SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'lease_beat'`, nil, &last); err != nil {
			return err
		}
		if shifted = raw.Missed(last, now, most); shifted != 0 {
			if _, err := w.exec(`UPDATE lease SET expires = expires + ?`, shifted); err != nil {
				return err
			}
		}
		if _, err := w.exec(`UPDATE meta SET value = CAST(? AS TEXT) WHERE name = 'lease_beat'`, now); err != nil {
			return err
		}
		return w.turn()
	})
	if err != nil {
		return 0, fmt.Errorf("note that leases are watched over: %w", err)
	}
	return shifted, nil
}
