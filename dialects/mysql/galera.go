package mysql

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// Every node of a Galera cluster takes writes. A lock stops the sessions of its own node alone. Sessions of
// different nodes meet when they commit: of transactions that have changed the same row meanwhile, the first
// one commits and the others get a deadlock (certification). So whoever takes a lock also changes a row that
// is the lock's own. A transaction that held the lock at one node while another one held it at another node
// is rolled back and run anew, and what it has read under the lock does not count.
//
// A node may not have applied yet what was committed at another. wsrep_sync_wait (open.go) makes each
// transaction, and each read outside of one, wait for all that was committed before.

// conflictTime is how long a transaction is run anew because others come before it: as long as a session
// waits for a lock.
const conflictTime = 10 * time.Second

// conflict says that the cluster has rolled a transaction back because another one came before it.
func (l *database) conflict(err error) bool {
	return l.galera.Load() && code(err) == deadlock && !errors.Is(err, changelog.ErrUnknown)
}

// turns has writers at several nodes take turns. Whoever has just committed is also the first to begin again,
// and would come before the others for as long as it has something to write.
type turns struct {
	others atomic.Int64 // until then others are taken to write, too; Unix nanoseconds
	next   atomic.Int64 // the next transaction does not begin before
}

// seen notes that others write.
func (t *turns) seen() { t.others.Store(time.Now().Add(time.Second).UnixNano()) }

// committed notes that a transaction has ended that had begun then.
func (t *turns) committed(begun time.Time) {
	if now := time.Now(); now.UnixNano() < t.others.Load() {
		t.next.Store(now.Add(rand.N(2*now.Sub(begun) + 1)).UnixNano())
	}
}

// wait waits until the next transaction may begin.
func (t *turns) wait(ctx context.Context) { _ = sleep.Until(ctx, time.Unix(0, t.next.Load())) }

// pause waits a moment before a transaction is run anew, so that the same two do not meet again.
func pause(ctx context.Context, try int) {
	_ = sleep.For(ctx, rand.N(time.Duration(min(try, 10))*time.Millisecond))
}

// resolve finds out what became of a transaction to whose COMMIT the cluster has answered with a deadlock.
// Nearly always another one came before it. But a node that has sent it to the others, and then lost them,
// may say the same. found tells whether the log has what it has written, or may have.
func (l *database) resolve(ctx context.Context, conn *sql.Conn, failed error, found func(context.Context, *sql.Conn) (bool, error)) error {
	var e *mysql.MySQLError
	if !l.galera.Load() || !errors.Is(failed, changelog.ErrUnknown) || !errors.As(failed, &e) || e.Number != deadlock {
		return failed
	}
	// It asks this node, whose questions come after what it has sent before, on this connection.
	maybe := true
	err := rollback(ctx, conn)
	if err == nil {
		maybe, err = found(ctx, conn)
	}
	if err != nil || maybe {
		return failed
	}
	return e
}

// rollback ends the transaction of a connection. A cluster may answer the first statement after a deadlock
// with the same deadlock.
func rollback(ctx context.Context, conn *sql.Conn) (err error) {
	for range attempts {
		if _, err = conn.ExecContext(ctx, `ROLLBACK`); code(err) != deadlock {
			return err
		}
	}
	return err
}

// hasRow tells whether the log has a row, or may have had it.
func hasRow(r *changelog.Row) func(context.Context, *sql.Conn) (bool, error) {
	return func(ctx context.Context, conn *sql.Conn) (has bool, err error) {
		err = conn.QueryRowContext(ctx, `
			SELECT EXISTS (SELECT 1 FROM log
			               WHERE id = ? AND `+"`key` = ? AND `at`"+` = ? AND value = ? AND author <=> ? AND audit_id <=> ?)
			    OR (SELECT CAST(value AS SIGNED) FROM meta WHERE name = 'floor') >= ?`,
			r.Revision, []byte(r.Key), r.At, append([]byte{}, r.Value...), author(r), audit(r), r.Revision).Scan(&has)
		return has, err
	}
}

// hasDecision tells whether the log has what a decision has written, or may have had it.
func hasDecision(d changelog.Decision) func(context.Context, *sql.Conn) (bool, error) {
	if len(d.Rows) > 0 {
		return hasRow(&d.Rows[0])
	}
	return func(ctx context.Context, conn *sql.Conn) (has bool, err error) {
		id, granted := int64(0), len(d.Grant) > 0
		if granted {
			id = d.Grant[0].ID
		} else {
			id = d.Revoke[0]
		}
		err = conn.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM lease WHERE id = ?)`, id).Scan(&has)
		return has == granted, err
	}
}
