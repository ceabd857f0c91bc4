package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// appendOne commits a lone change in one round trip: the server itself does, under the
// lock, what Appended.Judge does elsewhere, and COMMIT is in the same pipeline. On a fast
// disk the second round trip would be a third of a lone writer's commit. Results is nil if
// the expectation does not hold, or the log has moved or was set back; then nothing was written, and the caller finds out why.
func (l appender) appendOne(ctx context.Context, conn *pgx.Conn, c *changelog.Change) (a changelog.Appended, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	w := changelog.Witness{}
	if known := l.witness.Load(); known != nil {
		w = *known
	}
	var b pgx.Batch
	queueLock(&b)
	b.Queue(`
		WITH row AS (
			INSERT INTO log (id, key, create_id, deleted, at, value, author, audit_id)
			SELECT next.id, $1, CASE $2::bigint WHEN 0 THEN next.id ELSE newest.create_id END, $3, next.at, $5, $7::bigint, $8
			FROM (SELECT greatest(coalesce(last.id, 0), floor.value::bigint) + 1 AS id,
			             greatest(coalesce(last.at, 0), $4::bigint) AS at,
			             floor.value::bigint AS floor, last.id AS last, last.at AS last_at
			      FROM meta AS floor
			      LEFT JOIN (SELECT id, at FROM log ORDER BY id DESC LIMIT 1) AS last ON true
			      WHERE floor.name = 'floor') AS next
			LEFT JOIN (SELECT id, create_id, deleted FROM log
			           WHERE key = $1 ORDER BY id DESC LIMIT 1) AS newest ON true
			WHERE CASE $2::bigint WHEN 0 THEN coalesce(newest.deleted, true)
			      ELSE newest.id = $2::bigint AND NOT newest.deleted END
			  AND NOT EXISTS (SELECT FROM meta WHERE name = 'mark/moved')
			  AND next.id > $9::bigint
			  AND CASE WHEN next.last = $10::bigint THEN next.last_at = $11::bigint -- nobody else has written
			      ELSE coalesce((SELECT at = $11::bigint FROM log WHERE id = $10::bigint), next.floor >= $10::bigint) END
			RETURNING id, create_id, at)
		SELECT id, create_id, at, pg_notify($6, id::text) FROM row`,
		c.Key, c.Expect, c.Delete, time.Now().UnixMilli(), c.Value, l.channel(), orNull(c.Author), c.AuditID,
		w.Head, w.Revision, w.At)
	b.Queue(`COMMIT`)
	r := conn.SendBatch(ctx, &b)
	defer r.Close()
	if _, err := r.Exec(); err != nil {
		return a, beforeCommit(err)
	}
	if err := r.QueryRow().Scan(nil, nil, &a.Floor); err != nil {
		return a, beforeCommit(err)
	}
	var result changelog.Result
	err = r.QueryRow().Scan(&result.Revision, &result.CreateRevision, &a.At, nil)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return a, beforeCommit(err)
	}
	if err == nil {
		a.Head, a.Results = result.Revision-1, []changelog.Result{result}
	}
	return a, readCommit(r)
}

// readCommit reads the outcome of a pipeline's last statement, COMMIT.
func readCommit(r pgx.BatchResults) error {
	tag, err := r.Exec()
	if err == nil && tag.String() != "COMMIT" {
		return fmt.Errorf("server answered COMMIT with %s", tag) // it had rolled back
	}
	if err == nil {
		err = r.Close()
	}
	return atCommit(err)
}
