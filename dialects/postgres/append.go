package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// attempts is how often a batch is tried as long as COMMIT was not sent.
const attempts = 5

// commitTimeout bounds the second half of a commit, which does not end with the caller:
// an impatient client must not make the outcome unknown for its whole batch.
const commitTimeout = 30 * time.Second

// Append writes a batch in two round trips: lock and look; insert, notify and commit. A
// lone change whose expectation holds takes one.
func (l appender) Append(ctx context.Context, batch []changelog.Change) (changelog.Appended, error) {
	if l.kind != changelog.KindAPI && len(batch) > 0 {
		return changelog.Appended{}, fmt.Errorf("append batch: %w", changelog.ErrKind)
	}
	for try := 1; ; try++ {
		a, err := l.tryAppend(ctx, batch)
		if err == nil {
			return a, nil
		}
		if try == attempts || !retryable(err) || ctx.Err() != nil {
			return changelog.Appended{}, fmt.Errorf("append batch: %w", l.classify(err))
		}
		l.distrust(err)
	}
}

func (l appender) tryAppend(ctx context.Context, batch []changelog.Change) (a changelog.Appended, err error) {
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return a, err
	}
	defer func() { release(conn, err) }()
	if len(batch) == 1 {
		if a, err = l.appendOne(ctx, conn.Conn(), &batch[0]); err != nil || a.Results != nil {
			return a, err
		}
	}
	a.Results = make([]changelog.Result, len(batch))
	if err := lockAndLook(ctx, conn.Conn(), batch, l.witness.Load(), &a); err != nil {
		return a, err
	}
	rows := a.Judge(batch, nil)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	if len(rows) == 0 {
		_, err := conn.Exec(ctx, `ROLLBACK`)
		return a, err
	}
	return a, l.insertAndCommit(ctx, conn.Conn(), rows)
}

// release gives the connection back. After an error it may still be inside the
// transaction; closing the connection ends that for certain.
func release(conn *pgxpool.Conn, err error) {
	if err != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Conn().Close(ctx)
	}
	conn.Release()
}

// lockAndLook takes the write lock and reads, under it, the head, the floor and the
// newest row of each key, which it leaves in Found, FoundDeleted and CreateRevision.
func lockAndLook(ctx context.Context, conn *pgx.Conn, batch []changelog.Change, w *changelog.Witness, a *changelog.Appended) error {
	keys := make([]string, len(batch))
	for i := range batch {
		keys[i] = batch[i].Key
	}
	var b pgx.Batch
	queueLock(&b)
	// The next statements have a snapshot of their own, taken after the lock was given.
	b.Queue(`
		SELECT coalesce(last.id, 0), coalesce(last.at, 0), (SELECT value FROM meta WHERE name = 'mark/moved'),
		       (SELECT at FROM log WHERE id = $1)
		FROM (SELECT) AS always
		LEFT JOIN (SELECT id, at FROM log ORDER BY id DESC LIMIT 1) AS last ON true`, w.Row())
	b.Queue(`
		SELECT k.n, l.id, l.create_id, l.deleted
		FROM unnest($1::text[]) WITH ORDINALITY AS k (key, n)
		CROSS JOIN LATERAL (
			SELECT id, create_id, deleted FROM log
			WHERE log.key = k.key COLLATE "C"
			ORDER BY id DESC LIMIT 1) AS l`, keys)
	r := conn.SendBatch(ctx, &b)
	defer r.Close()
	if _, err := r.Exec(); err != nil {
		return err
	}
	if err := r.QueryRow().Scan(nil, nil, &a.Floor); err != nil {
		return err
	}
	var moved *string
	var seen *int64
	if err := r.QueryRow().Scan(&a.Head, &a.At, &moved, &seen); err != nil {
		return err
	}
	if moved != nil {
		return changelog.Moved(*moved)
	}
	a.Head = max(a.Head, a.Floor)
	if err := w.Check(changelog.Head{Revision: a.Head, Floor: a.Floor}, seen); err != nil {
		return err
	}
	a.At = max(time.Now().UnixMilli(), a.At)
	if err := scanNewest(r, a.Results); err != nil {
		return err
	}
	return r.Close()
}

func scanNewest(r pgx.BatchResults, results []changelog.Result) error {
	rows, err := r.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var n, id, created int64
		var deleted bool
		if err := rows.Scan(&n, &id, &created, &deleted); err != nil {
			return err
		}
		results[n-1] = changelog.Result{Found: id, FoundDeleted: deleted, CreateRevision: created}
	}
	return rows.Err()
}

// columns are the rows to insert, as arrays for unnest. Their time is the same.
type columns struct {
	ids, creates []int64
	keys         []string
	deletes      []bool
	values       [][]byte
	authors      []*int64
	audits       [][]byte
}

func columnsOf(rows []changelog.Row) (c columns) {
	for i := range rows {
		r := &rows[i]
		c.ids = append(c.ids, r.Revision)
		c.creates = append(c.creates, r.CreateRevision)
		c.keys = append(c.keys, r.Key)
		c.deletes = append(c.deletes, r.Deleted)
		c.values = append(c.values, r.Value)
		c.authors = append(c.authors, orNull(r.Author))
		c.audits = append(c.audits, r.AuditID)
	}
	return c
}

func orNull(author int64) *int64 {
	if author == 0 {
		return nil
	}
	return &author
}

func (l appender) insertAndCommit(ctx context.Context, conn *pgx.Conn, rows []changelog.Row) error {
	c, last := columnsOf(rows), &rows[len(rows)-1]
	var b pgx.Batch
	b.Queue(`
		INSERT INTO log (id, key, create_id, deleted, at, value, author, audit_id)
		SELECT id, key, create_id, deleted, $5::bigint, value, author, audit_id
		FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::boolean[], $6::bytea[], $7::bigint[], $8::bytea[])
		     AS r (id, key, create_id, deleted, value, author, audit_id)`,
		c.ids, c.keys, c.creates, c.deletes, last.At, c.values, c.authors, c.audits)
	b.Queue(`SELECT pg_notify($1, $2::bigint::text)`, l.channel(), last.Revision)
	b.Queue(`COMMIT`)
	r := conn.SendBatch(ctx, &b)
	defer r.Close()
	for range 2 {
		if _, err := r.Exec(); err != nil {
			return beforeCommit(err)
		}
	}
	return readCommit(r)
}

// beforeCommit judges an error of a statement that COMMIT follows in the same pipeline.
// The server answers in order: what it reports in the place of this statement's result,
// its own end included, came before COMMIT. If the connection broke, the outcome is
// unknown.
func beforeCommit(err error) error {
	var e *pgconn.PgError
	if errors.As(err, &e) || pgconn.SafeToRetry(err) {
		return err
	}
	return unknown(err)
}

// atCommit judges an error of COMMIT. An ordinary one is a rollback; the server's end in
// the middle of it, or the connection's, may be anything.
func atCommit(err error) error {
	var e *pgconn.PgError
	if err == nil || errors.As(err, &e) && e.SeverityUnlocalized == "ERROR" {
		return err
	}
	return unknown(err)
}

// queueLock begins a transaction and takes the log's write lock; the answer to the second
// statement is the floor, in its third column.
//
// A replica that freezes or loses its network must not keep the lock. Without the second
// setting the server plans statements that take arrays anew for each batch, and finds the
// same: a seventh of the time of a small commit. Both stand in the statement that locks
// because each more costs some 10 µs, a tenth of a fast disk's sync.
func queueLock(b *pgx.Batch) {
	b.Queue(`BEGIN ISOLATION LEVEL READ COMMITTED`)
	b.Queue(`
		SELECT set_config('idle_in_transaction_session_timeout', '20s', true),
		       set_config('plan_cache_mode', 'force_generic_plan', true),
		       value::bigint
		FROM meta WHERE name = 'floor' FOR UPDATE`)
}
