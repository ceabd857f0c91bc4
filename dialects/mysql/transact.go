package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/plinth-io/plinth/dialects/internal/raw"
	"github.com/plinth-io/plinth/dialects/internal/scan"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Transact runs decide in a transaction of two round trips: lock and look; write and commit.
func (l appender) Transact(ctx context.Context, ask changelog.Ask, decide func(*changelog.Found) (changelog.Decision, error)) error {
	if l.kind != changelog.KindEtcd {
		return fmt.Errorf("transact: %w", changelog.ErrKind)
	}
	err := l.again(ctx, func() error { return l.tryTransact(ctx, ask, decide) })
	return raw.Ended(err, l.classify)
}

// again runs f, and runs it anew after an error that another attempt may well not meet.
func (l *database) again(ctx context.Context, f func() error) error {
	begun := time.Now()
	for try := 1; ; try++ {
		err := f()
		var rejected *raw.Rejected
		if err == nil || errors.As(err, &rejected) || !l.retryable(err) || ctx.Err() != nil {
			return err
		}
		switch conflict := l.conflict(err); {
		case conflict && time.Since(begun) < conflictTime:
			l.turns.seen()
			pause(ctx, try)
		case conflict || try >= attempts:
			return err
		}
	}
}

func (l appender) tryTransact(ctx context.Context, ask changelog.Ask, decide func(*changelog.Found) (changelog.Decision, error)) (err error) {
	l.turns.wait(ctx)
	begun := time.Now()
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return err
	}
	var broken error
	defer func() { l.release(conn, broken) }()
	var found changelog.Found
	if broken = l.lockAndFind(ctx, conn, ask, &found); broken != nil {
		return broken
	}
	d, wrote, rejected := raw.Decide(&found, decide)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	if !wrote {
		if _, broken = conn.ExecContext(ctx, `ROLLBACK`); rejected != nil {
			return rejected
		}
		if broken == nil {
			return l.settle(ctx, found.Revision) // callers are told what was found
		}
		return broken
	}
	if broken = l.resolve(ctx, conn, l.writeAndCommit(ctx, conn, d), hasDecision(d)); broken == nil {
		l.settled(found.Revision)
		l.turns.committed(begun)
	}
	return broken
}

// lockAndFind takes the write lock and reads under it what ask says. Leases are locked, too,
// so that none is renewed before the transaction ends; the time is read before that, so that
// one that was renewed while this waited for it has not expired.
func (l appender) lockAndFind(ctx context.Context, conn *sql.Conn, ask changelog.Ask, f *changelog.Found) error {
	w := l.witness.Load()
	parts := append(l.begin(),
		part{sql: `SELECT id, ` + "`at`, (SELECT seen.`at`" + ` FROM log AS seen WHERE seen.id = ?) FROM log ORDER BY id DESC LIMIT 1`, args: []any{w.Row()}},
		part{sql: readClock},
		part{sql: `
			SELECT id, ` + "`key`, create_id, deleted, `at`" + `, value, version, lease
			FROM log
			WHERE id > ?
			ORDER BY id
			LIMIT ?`, args: []any{ask.After, ask.Limit}})
	if len(ask.Leases) > 0 {
		parts = append(parts, part{sql: `SELECT id, ttl, expires FROM lease WHERE id IN ` + places(len(ask.Leases)) + ` ORDER BY id FOR UPDATE`, args: idArgs(ask.Leases)})
	}
	got, err := l.send(ctx, conn, parts...)
	if err != nil {
		return err
	}
	defer got.close()
	if err := got.one(true, &f.Floor); err != nil {
		return err
	}
	var seen *int64
	if err := got.one(false, &f.Revision, &f.At, &seen); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	f.Revision = max(f.Revision, f.Floor)
	if err := w.Check(f.Head, seen); err != nil {
		return err
	}
	f.At = max(time.Now().UnixMilli(), f.At)
	if err := got.one(false, &f.Now); err != nil {
		return err
	}
	rows, err := got.next(false)
	if err != nil {
		return err
	}
	if f.Rows, err = scan.NextRawRows(rows); err != nil {
		return err
	}
	if len(ask.Leases) == 0 {
		return got.close()
	}
	if rows, err = got.next(false); err != nil {
		return err
	}
	if f.Leases, err = scan.NextLeases(rows); err != nil {
		return err
	}
	return got.close()
}

// statements are what one packet has, without COMMIT.
type statements struct {
	parts []part
	size  int // at most, when the arguments are in their places
}

func (s *statements) add(sql string, size int, args ...any) {
	s.parts = append(s.parts, part{sql: sql, args: args})
	s.size += size + len(sql)
}

// writeAndCommit sends what was decided in as few packets as the server's limit allows, COMMIT
// in the last one: leases that go first, so that an id can be granted anew.
func (l appender) writeAndCommit(ctx context.Context, conn *sql.Conn, d changelog.Decision) error {
	s := leaseStatements(d)
	for rows := d.Rows; len(rows) > 0; {
		n, size := fitting(rows, l.packet-1000-s.size)
		s.add(rawInsertSQL(n), size, rawInsertArgs(rows[:n])...)
		if rows = rows[n:]; len(rows) == 0 {
			break
		}
		for _, p := range s.parts {
			if _, err := conn.ExecContext(ctx, p.sql, p.args...); err != nil {
				return err
			}
		}
		s = &statements{}
	}
	return l.commit(ctx, conn, s.parts...)
}

// fitting returns how many of rows go into a packet with so much room, and their size. Quoting
// may double a value's size. A single row always goes.
func fitting(rows []changelog.Row, room int) (n, size int) {
	for i := range rows {
		more := 2*(len(rows[i].Value)+len(rows[i].Key)) + 150
		if size+more > room && i > 0 {
			return i, size
		}
		size += more
	}
	return len(rows), size
}

func leaseStatements(d changelog.Decision) *statements {
	s := &statements{}
	if n := len(d.Revoke); n > 0 {
		s.add(`DELETE FROM lease WHERE id IN `+places(n), 22*n, idArgs(d.Revoke)...)
	}
	if n := len(d.Grant); n > 0 {
		args := make([]any, 0, 3*n)
		for _, g := range d.Grant {
			args = append(args, g.ID, g.TTL, g.Expires)
		}
		s.add(`INSERT INTO lease (id, ttl, expires) VALUES (?, ?, ?)`+strings.Repeat(`, (?, ?, ?)`, n-1), 70*n, args...)
	}
	return s
}

func rawInsertSQL(n int) string {
	return "INSERT INTO log (id, `key`, create_id, deleted, `at`, value, version, lease) VALUES (?, ?, ?, ?, ?, ?, ?, ?)" +
		strings.Repeat(`, (?, ?, ?, ?, ?, ?, ?, ?)`, n-1)
}

func rawInsertArgs(rows []changelog.Row) []any {
	args := make([]any, 0, 8*len(rows))
	for i := range rows {
		r := &rows[i]
		value := r.Value
		if value == nil {
			value = []byte{}
		}
		args = append(args, r.Revision, []byte(r.Key), r.CreateRevision, r.Deleted, r.At, value, r.Version, r.Lease)
	}
	return args
}

// Cut moves the floor at once.
func (l compaction) Cut(ctx context.Context, through int64) (found int64, err error) {
	err = l.again(ctx, func() error {
		return l.transact(ctx, func(tx *txn) (err error) {
			if found, err = tx.lock(ctx); err != nil || through <= found {
				return err
			}
			_, err = tx.ExecContext(ctx, `UPDATE meta SET value = ? WHERE name = 'floor'`, through)
			return err
		})
	})
	if err != nil {
		return 0, fmt.Errorf("cut: %w", l.classify(err))
	}
	return found, nil
}
