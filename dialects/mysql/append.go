package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// attempts is how often a batch is tried as long as COMMIT was not sent.
const attempts = 5

// commitTimeout bounds the second half of a commit, which does not end with the caller:
// an impatient client must not make the outcome unknown for its whole batch.
const commitTimeout = 30 * time.Second

// Append writes a batch in two round trips: lock and look; insert and commit. A lone change
// whose expectation holds takes one.
func (l appender) Append(ctx context.Context, batch []changelog.Change) (changelog.Appended, error) {
	if l.kind != changelog.KindAPI && len(batch) > 0 {
		return changelog.Appended{}, fmt.Errorf("append batch: %w", changelog.ErrKind)
	}
	var a changelog.Appended
	err := l.again(ctx, func() (err error) {
		a, err = l.tryAppend(ctx, batch)
		return err
	})
	if err != nil {
		return changelog.Appended{}, fmt.Errorf("append batch: %w", l.classify(err))
	}
	return a, nil
}

func (l appender) tryAppend(ctx context.Context, batch []changelog.Change) (a changelog.Appended, err error) {
	l.turns.wait(ctx)
	begun := time.Now()
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return a, err
	}
	defer func() { l.release(conn, err) }()
	if l.lone(batch) {
		if a, err = l.appendOne(ctx, conn, &batch[0]); err != nil {
			return a, err
		}
		if a.Results != nil {
			l.settled(a.Results[0].Revision)
			return a, nil
		}
	}
	a.Results = make([]changelog.Result, len(batch))
	if err := l.lockAndLook(ctx, conn, batch, &a); err != nil {
		return a, err
	}
	rows := a.Judge(batch, nil)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	if len(rows) == 0 {
		_, err := conn.ExecContext(ctx, `ROLLBACK`)
		return a, err
	}
	if err := l.resolve(ctx, conn, l.insertAndCommit(ctx, conn, rows), hasRow(&rows[0])); err != nil {
		return a, err
	}
	l.settled(rows[len(rows)-1].Revision)
	l.turns.committed(begun)
	return a, nil
}

// release gives the connection back. After an error it may still be inside the
// transaction; closing the connection ends that for certain. A cluster rolls transactions back
// so often that it is worth keeping their connections.
func (l *database) release(conn *sql.Conn, err error) {
	if err != nil && !(l.conflict(err) && l.restore(conn)) {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	conn.Close()
}

// restore makes a connection fit for another transaction.
func (l *database) restore(conn *sql.Conn) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return rollback(ctx, conn) == nil
}

// begin returns what a transaction begins with that takes the write lock (lock.go). The result is the floor.
func (l *database) begin() []part {
	lock := part{sql: `SELECT CAST(value AS SIGNED) FROM meta WHERE name = 'floor' FOR UPDATE`}
	start := part{sql: `START TRANSACTION READ WRITE`, silent: true}
	if l.galera.Load() {
		return []part{start, {sql: takeTurn, silent: true}, lock}
	}
	return []part{start, lock}
}

// lockAndLook takes the write lock and reads, under it, the head, the floor and the
// newest row of each key, which it leaves in Found, FoundDeleted and CreateRevision.
func (l appender) lockAndLook(ctx context.Context, conn *sql.Conn, batch []changelog.Change, a *changelog.Appended) error {
	w := l.witness.Load()
	alone := l.foreign.Load() == 0
	seen, find := part{sql: `NULL`}, []any{}
	if !alone {
		seen = part{sql: "(SELECT seen.`at` FROM log AS seen WHERE seen.id = ?)", args: []any{w.Row()}}
	}
	for i := range batch {
		find = append(find, i, []byte(batch[i].Key))
	}
	if len(batch) == 0 {
		find = append(find, 0, []byte{}) // no key is empty
	}
	got, err := l.send(ctx, conn, append(l.begin(),
		part{sql: `SELECT id, ` + "`at`" + `, (SELECT value FROM meta WHERE name = 'mark/moved'), ` + seen.sql + `
		           FROM log ORDER BY id DESC LIMIT 1`, args: seen.args},
		part{sql: newestSQL(len(batch)), args: find})...)
	if err != nil {
		return err
	}
	defer got.close()
	if err := got.one(true, &a.Floor); err != nil {
		return err
	}
	var moved sql.NullString
	var seenAt *int64
	if err := got.one(false, &a.Head, &a.At, &moved, &seenAt); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if moved.Valid {
		return changelog.Moved(moved.String)
	}
	newest, newestAt := a.Head, a.At
	a.Head = max(a.Head, a.Floor)
	a.At = max(time.Now().UnixMilli(), a.At)
	rows, err := got.next(false)
	if err != nil {
		return err
	}
	for rows.Next() {
		var n int
		var r changelog.Result
		if err := rows.Scan(&n, &r.Found, &r.CreateRevision, &r.FoundDeleted); err != nil {
			return err
		}
		a.Results[n] = r
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if err := got.close(); err != nil {
		return err
	}
	switch {
	case newest == w.Row():
		seenAt = &newestAt
	case newest > w.Row() && w.Row() > 0 && alone:
		seenAt, err = lookFor(ctx, conn, w.Row())
	}
	if err != nil {
		return err
	}
	l.noteForeign(newest > w.Row())
	return w.Check(changelog.Head{Revision: a.Head, Floor: a.Floor}, seenAt)
}

// foreignFor is how many appends ask for the expected row after one that has found newer rows. Without
// rows of others that row is the newest one, which is read anyway; a lone writer would pay for the
// question a tenth of its commit.
const foreignFor = 100

// noteForeign notes whether others have written since the row that is expected.
func (l appender) noteForeign(have bool) {
	if have {
		if l.foreign.Store(foreignFor); l.galera.Load() {
			l.turns.seen()
		}
	} else if n := l.foreign.Load(); n > 0 {
		l.foreign.Store(n - 1) // there is one append at a time
	}
}

// lookFor returns the time of a row, nil if it is not there.
func lookFor(ctx context.Context, conn *sql.Conn, id int64) (at *int64, err error) {
	err = conn.QueryRowContext(ctx, "SELECT (SELECT `at` FROM log WHERE id = ?)", id).Scan(&at)
	return at, err
}

// newestSQL selects the newest row of each of n keys. They are a table of constants that
// is joined to the end of each key's history in the index (key, id), so that a long
// history costs nothing. One key alone is worth a statement without that table, which
// costs a lone writer 0.1 ms, a sixth of its commit on a fast disk.
func newestSQL(n int) string {
	if n <= 1 {
		return "SELECT ?, id, create_id, deleted FROM log WHERE `key` = ? ORDER BY id DESC LIMIT 1"
	}
	return `
		SELECT STRAIGHT_JOIN newest.n, l.id, l.create_id, l.deleted
		FROM (SELECT k.n, (SELECT o.id FROM log AS o
		                   WHERE o.` + "`key`" + ` = k.k
		                   ORDER BY o.id DESC LIMIT 1) AS id
		      FROM (SELECT ? AS n, ? AS k` + strings.Repeat(` UNION ALL SELECT ?, ?`, n-1) + `) AS k) AS newest
		JOIN log AS l ON l.id = newest.id`
}

// scanOne reads the one row of the current result set; ok says that there is one.
func scanOne(rows *sql.Rows, ok bool, into ...any) error {
	if !ok {
		return missing(rows)
	}
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return err
		}
		return sql.ErrNoRows
	}
	return rows.Scan(into...)
}

// missing says why there is no further result set.
func missing(rows *sql.Rows) error {
	if err := rows.Err(); err != nil {
		return err
	}
	return errors.New("server sent fewer results than statements")
}

// insertAndCommit sends the rows in as few packets as the server's limit allows, COMMIT
// in the last one. Quoting may double a value's size.
func (l appender) insertAndCommit(ctx context.Context, conn *sql.Conn, rows []changelog.Row) error {
	first, size := 0, 0
	for i := range rows {
		n := 2*(len(rows[i].Value)+len(rows[i].Key)) + 250
		if size+n > l.packet-1000 && i > first {
			if _, err := conn.ExecContext(ctx, insertSQL(i-first), insertArgs(rows[first:i])...); err != nil {
				return err
			}
			first, size = i, 0
		}
		size += n
	}
	return l.commit(ctx, conn, part{sql: insertSQL(len(rows) - first), args: insertArgs(rows[first:])})
}

func insertSQL(n int) string {
	return "INSERT INTO log (id, `key`, create_id, deleted, `at`, value, author, audit_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?)" +
		strings.Repeat(`, (?, ?, ?, ?, ?, ?, ?, ?)`, n-1)
}

func insertArgs(rows []changelog.Row) []any {
	args := make([]any, 0, 8*len(rows))
	for i := range rows {
		r := &rows[i]
		args = append(args, r.Revision, []byte(r.Key), r.CreateRevision, r.Deleted, r.At, notNull(r.Value), author(r), audit(r))
	}
	return args
}

// notNull returns a value as the column takes it: nil would be NULL.
func notNull(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return value
}

// author and audit return what a row has in the columns of that name; nil is NULL.
func author(r *changelog.Row) any {
	if r.Author == 0 {
		return nil
	}
	return r.Author
}

func audit(r *changelog.Row) any {
	if r.AuditID == nil {
		return nil
	}
	return r.AuditID
}

// commit runs statements and COMMIT in one packet. The SELECT between them tells their errors
// apart: if its answer came, what fails after it is COMMIT.
func (l *database) commit(ctx context.Context, conn *sql.Conn, parts ...part) error {
	if l.galera.Load() {
		return commitEach(ctx, conn, parts)
	}
	got, err := l.send(ctx, conn, append(parts, part{sql: `SELECT 1; COMMIT`})...)
	if err != nil {
		return beforeCommit(err)
	}
	defer got.close()
	return committed(got.rows)
}

// committed reads what is left of the answers to a packet that ends with COMMIT.
func committed(rows *sql.Rows) error {
	for more := true; more; more = rows.NextResultSet() {
		for rows.Next() {
		}
	}
	if err := rows.Err(); err != nil {
		return unknown(err)
	}
	return rows.Close()
}

// commitEach runs statements, and then COMMIT.
func commitEach(ctx context.Context, conn *sql.Conn, parts []part) error {
	for _, p := range parts {
		if _, err := conn.ExecContext(ctx, p.sql, p.args...); err != nil {
			return err
		}
	}
	if _, err := conn.ExecContext(ctx, `COMMIT`); err != nil {
		return unknown(err)
	}
	return nil
}
