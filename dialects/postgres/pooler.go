package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/plinth-io/plinth/dialects/internal/refused"
)

// usePooler looks whether there is a pooler, such as PgBouncer, before the server. A pooler may give each
// transaction another session, in which no prepared statement is known. If the DSN does not say how
// statements are sent, they are then not prepared.
func (l *database) usePooler(ctx context.Context, wait time.Duration) error {
	if l.config.DefaultQueryExecMode != pgx.QueryExecModeCacheStatement {
		return nil
	}
	pooled := false
	err := refused.Answer(ctx, wait, func(ctx context.Context) (err error) {
		pooled, err = l.isPooled(ctx, l.config.Copy())
		return err
	})
	if pooled {
		l.config = l.config.Copy()
		l.config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		l.log.Info("there is a pooler before Postgres: statements are not prepared")
	}
	return err
}

// isPooled compares the session that the first answer named with the one that runs a statement: a pooler
// names none of the server's.
func (l *database) isPooled(ctx context.Context, config *pgx.ConnConfig) (bool, error) {
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := l.connect(ctx, config)
	if err != nil {
		return false, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var session uint32
	err = conn.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&session)
	return session != conn.PgConn().PID(), err
}
