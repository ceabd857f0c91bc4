package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// appendOne commits a lone change in one round trip: the server itself does, under the
// lock, what Appended.Judge does elsewhere, and COMMIT is in the same packet. Variables of the
// session carry what was found from one statement to the next; an INSERT that reads the table that it
// writes would have the server copy the value to a temporary table on the disk first. A variable keeps what it had
// where nothing is found, but the floor, which is an aggregate: without its row, as while the
// database is restored, nothing is written. Results is nil
// if the expectation does not hold, or the log has moved or was set back; then nothing was written,
// and the caller finds out why.
func (l appender) appendOne(ctx context.Context, conn *sql.Conn, c *changelog.Change) (a changelog.Appended, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	got, err := l.send(ctx, conn,
		part{sql: `START TRANSACTION READ WRITE`},
		part{sql: `SELECT MAX(CAST(value AS SIGNED)) INTO @floor FROM meta WHERE name = 'floor' FOR UPDATE`},
		judgeOne(c, l.witness.Load()),
		insertOne(c),
		part{sql: `SELECT COALESCE(@holds AND @floor IS NOT NULL, FALSE), @id, COALESCE(@created, 0), @at, @floor; COMMIT`})
	if errors.Is(err, driver.ErrBadConn) {
		return a, err // nothing was sent
	}
	if err != nil {
		return a, beforeCommit(err)
	}
	defer got.close()
	var holds bool
	var id, created, at, floor sql.NullInt64
	if err := got.one(true, &holds, &id, &created, &at, &floor); err != nil {
		return a, beforeCommit(err)
	}
	if holds {
		a = changelog.Appended{Head: id.Int64 - 1, Floor: floor.Int64, At: at.Int64, Results: []changelog.Result{{Revision: id.Int64, CreateRevision: created.Int64}}}
	}
	return a, committed(got.rows)
}

// lone tells whether appendOne takes a batch: a change that surely fits into one packet, in which quoting
// may double the size of a value. To a Galera cluster no packet has several statements (packet.go).
func (l appender) lone(batch []changelog.Change) bool {
	if len(batch) != 1 || l.galera.Load() {
		return false
	}
	c := &batch[0]
	return !(c.Delete && c.Expect == 0) && 2*(len(c.Value)+2*len(c.Key)) < l.packet-4000
}

// judgeOne finds whether a change holds, and the revisions and time of its row. The log is
// compared with w, which may be nil, as Witness.Check does it. Rows that are looked up by the greatest id are
// constants to the server, which reads them while it plans: half the cost of two tables of
// one row each that are ordered.
func judgeOne(c *changelog.Change, w *changelog.Witness) part {
	if w == nil {
		w = &changelog.Witness{}
	}
	head := `GREATEST(COALESCE(last.id, 0), @floor)`
	created, holds, args := head+` + 1`, `COALESCE(newest.deleted, TRUE)`, []any{time.Now().UnixMilli()}
	if c.Expect != 0 {
		created, holds, args = `newest.create_id`, `newest.id = ? AND NOT newest.deleted`, append(args, c.Expect)
	}
	return part{
		sql: `
		SELECT ` + head + ` + 1, ` + created + ", GREATEST(COALESCE(last.`at`, 0), ?), " + holds + `
		       AND moved.name IS NULL
		       AND ` + head + " >= ?" + `
		       AND CASE WHEN last.id = ? THEN last.` + "`at` = ?" + `
		           ELSE COALESCE((SELECT seen.` + "`at`" + ` = ? FROM log AS seen WHERE seen.id = ?), @floor >= ?) END
		INTO @id, @created, @at, @holds
		FROM meta AS always
		LEFT JOIN log AS last ON last.id = (SELECT MAX(id) FROM log)
		LEFT JOIN log AS newest ON newest.id = (SELECT MAX(id) FROM log WHERE ` + "`key`" + ` = ?)
		LEFT JOIN meta AS moved ON moved.name = 'mark/moved'
		WHERE always.name = 'floor'`,
		args: append(args, w.Head, w.Revision, w.At, w.At, w.Revision, w.Revision, []byte(c.Key)),
	}
}

// insertOne inserts the row of a change that holds.
func insertOne(c *changelog.Change) part {
	r := changelog.Row{Key: c.Key, Deleted: c.Delete, Value: c.Value, Author: c.Author, AuditID: c.AuditID}
	return part{
		sql: "INSERT INTO log (id, `key`, create_id, deleted, `at`, value, author, audit_id)\n" +
			`		SELECT @id, ?, @created, ?, @at, ?, ?, ? FROM DUAL WHERE @holds AND @floor IS NOT NULL`,
		args: []any{[]byte(r.Key), r.Deleted, notNull(r.Value), author(&r), audit(&r)},
	}
}
