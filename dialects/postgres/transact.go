package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/plinth-io/plinth/dialects/internal/raw"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Transact runs decide in a transaction of two round trips: lock and look; write, notify and
// commit.
func (l appender) Transact(ctx context.Context, ask changelog.Ask, decide func(*changelog.Found) (changelog.Decision, error)) error {
	if l.kind != changelog.KindEtcd {
		return fmt.Errorf("transact: %w", changelog.ErrKind)
	}
	err := l.again(ctx, func() error { return l.tryTransact(ctx, ask, decide) })
	return raw.Ended(err, l.classify)
}

// again runs f, and runs it anew after an error that another attempt may well not meet.
func (l *database) again(ctx context.Context, f func() error) error {
	for try := 1; ; try++ {
		err := f()
		var rejected *raw.Rejected
		if err == nil || try == attempts || errors.As(err, &rejected) || !retryable(err) || ctx.Err() != nil {
			return err
		}
		l.distrust(err)
	}
}

func (l appender) tryTransact(ctx context.Context, ask changelog.Ask, decide func(*changelog.Found) (changelog.Decision, error)) (err error) {
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	var broken error
	defer func() { release(conn, broken) }()
	var found changelog.Found
	if broken = lockAndFind(ctx, conn.Conn(), ask, l.witness.Load(), &found); broken != nil {
		return broken
	}
	d, wrote, rejected := raw.Decide(&found, decide)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	if !wrote {
		if _, broken = conn.Exec(ctx, `ROLLBACK`); rejected != nil {
			return rejected
		}
		return broken
	}
	broken = l.writeAndCommit(ctx, conn.Conn(), d)
	return broken
}

// lockAndFind takes the write lock and reads under it what ask says. Leases are locked, too,
// so that none is renewed before the transaction ends; the time is read before that, so that
// one that was renewed while this waited for it has not expired.
func lockAndFind(ctx context.Context, conn *pgx.Conn, ask changelog.Ask, w *changelog.Witness, f *changelog.Found) error {
	var b pgx.Batch
	queueLock(&b)
	b.Queue(`
		SELECT coalesce(last.id, 0), coalesce(last.at, 0), (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
		       (SELECT at FROM log WHERE id = $1)
		FROM (SELECT) AS always
		LEFT JOIN (SELECT id, at FROM log ORDER BY id DESC LIMIT 1) AS last ON true`, w.Row())
	b.Queue(`
		SELECT id, key, create_id, deleted, at, value, version, lease
		FROM log
		WHERE id > $1
		ORDER BY id
		LIMIT $2`, ask.After, ask.Limit)
	if len(ask.Leases) > 0 {
		b.Queue(`SELECT id, ttl, expires FROM lease WHERE id = ANY ($1::bigint[]) ORDER BY id FOR UPDATE`, ask.Leases)
	}
	r := conn.SendBatch(ctx, &b)
	defer r.Close()
	if _, err := r.Exec(); err != nil {
		return err
	}
	if err := r.QueryRow().Scan(nil, nil, &f.Floor); err != nil {
		return err
	}
	var seen *int64
	if err := r.QueryRow().Scan(&f.Revision, &f.At, &f.Now, &seen); err != nil {
		return err
	}
	f.Revision = max(f.Revision, f.Floor)
	if err := w.Check(f.Head, seen); err != nil {
		return err
	}
	f.At = max(time.Now().UnixMilli(), f.At)
	if err := findRows(r, len(ask.Leases) > 0, f); err != nil {
		return err
	}
	return r.Close()
}

func findRows(r pgx.BatchResults, leases bool, f *changelog.Found) error {
	rows, err := r.Query()
	if err != nil {
		return err
	}
	if f.Rows, err = pgx.CollectRows(rows, scanRaw); err != nil || !leases {
		return err
	}
	if rows, err = r.Query(); err != nil {
		return err
	}
	f.Leases, err = pgx.CollectRows(rows, scanLease)
	return err
}

// writeAndCommit writes what was decided in one pipeline with COMMIT: leases that go first, so
// that an id can be granted anew.
func (l appender) writeAndCommit(ctx context.Context, conn *pgx.Conn, d changelog.Decision) error {
	var b pgx.Batch
	if len(d.Revoke) > 0 {
		b.Queue(`DELETE FROM lease WHERE id = ANY ($1::bigint[])`, d.Revoke)
	}
	if len(d.Grant) > 0 {
		queueGrants(&b, d.Grant)
	}
	if len(d.Rows) > 0 {
		queueRows(&b, d.Rows)
		b.Queue(`SELECT pg_notify($1, $2::bigint::text)`, l.channel(), d.Rows[len(d.Rows)-1].Revision)
	}
	statements := b.Len()
	b.Queue(`COMMIT`)
	r := conn.SendBatch(ctx, &b)
	defer r.Close()
	for range statements {
		if _, err := r.Exec(); err != nil {
			return beforeCommit(err)
		}
	}
	return readCommit(r)
}

func queueGrants(b *pgx.Batch, grants []changelog.Lease) {
	var ids, ttls, expires []int64
	for _, g := range grants {
		ids, ttls, expires = append(ids, g.ID), append(ttls, g.TTL), append(expires, g.Expires)
	}
	b.Queue(`
		INSERT INTO lease (id, ttl, expires)
		SELECT id, ttl, expires FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS l (id, ttl, expires)`,
		ids, ttls, expires)
}

func queueRows(b *pgx.Batch, rows []changelog.Row) {
	c := columnsOf(rows)
	versions, leases := make([]int64, len(rows)), make([]int64, len(rows))
	for i := range rows {
		c.keys[i] = encodeKey(c.keys[i])
		if c.values[i] == nil {
			c.values[i] = []byte{}
		}
		versions[i], leases[i] = rows[i].Version, rows[i].Lease
	}
	b.Queue(`
		INSERT INTO log (id, key, create_id, deleted, at, value, version, lease)
		SELECT id, key, create_id, deleted, $5::bigint, value, version, lease
		FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::boolean[], $6::bytea[], $7::bigint[], $8::bigint[])
		     AS r (id, key, create_id, deleted, value, version, lease)`,
		c.ids, c.keys, c.creates, c.deletes, rows[0].At, c.values, versions, leases)
}

// Cut moves the floor at once, and tells other processes, for which it is the head if it is
// above the newest row.
func (l compaction) Cut(ctx context.Context, through int64) (found int64, err error) {
	first := true // attempt to reach COMMIT, which may be done without an answer: a later one finds its work
	err = l.again(ctx, func() error {
		return pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			now, err := l.cut(ctx, tx, through)
			if err == nil && first {
				found, first = now, false
			}
			return err
		})
	})
	if err != nil {
		return 0, fmt.Errorf("cut: %w", l.classify(err))
	}
	return found, nil
}

func (l compaction) cut(ctx context.Context, tx pgx.Tx, through int64) (found int64, err error) {
	err = tx.QueryRow(ctx, `SELECT value::bigint FROM meta WHERE name = 'floor' FOR UPDATE`).Scan(&found)
	if err != nil || through <= found {
		return found, err
	}
	if _, err := tx.Exec(ctx, `UPDATE meta SET value = $1::bigint::text WHERE name = 'floor'`, through); err != nil {
		return found, err
	}
	_, err = tx.Exec(ctx, `
		SELECT pg_notify($1, greatest($2::bigint, (SELECT max(id) FROM log))::text)`, l.channel(), through)
	return found, err
}
