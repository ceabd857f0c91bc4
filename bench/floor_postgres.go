package bench

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/plinth-io/plinth/dialects"
)

// postgresFloor commits with the one round trip of a statement outside a transaction.
type postgresFloor struct{ conn *pgx.Conn }

func openPostgresFloor(ctx context.Context, dsn string) (floor, error) {
	config, err := dialects.PostgresConfig(dsn, dialects.Options{})
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return postgresFloor{conn}, nil
}

func (f postgresFloor) insert(ctx context.Context, rows []row) error {
	now := time.Now().UnixMilli()
	if len(rows) == 1 {
		_, err := f.conn.Exec(ctx, `
			INSERT INTO log (id, key, create_id, deleted, at, value) VALUES ($1, $2, $1, false, $3, $4)`,
			rows[0].id, rows[0].key, now, rows[0].value)
		return err
	}
	ids, keys, values := make([]int64, len(rows)), make([]string, len(rows)), make([][]byte, len(rows))
	for i, r := range rows {
		ids[i], keys[i], values[i] = r.id, r.key, r.value
	}
	_, err := f.conn.Exec(ctx, `
		INSERT INTO log (id, key, create_id, deleted, at, value)
		SELECT id, key, id, false, $4, value
		FROM unnest($1::bigint[], $2::text[], $3::bytea[]) AS r (id, key, value)`, ids, keys, values, now)
	return err
}

func (f postgresFloor) describe(ctx context.Context) (version, settings string, err error) {
	err = f.conn.QueryRow(ctx, `
		SELECT current_setting('server_version'),
		       'fsync=' || current_setting('fsync') || ', synchronous_commit=' || current_setting('synchronous_commit')
	`).Scan(&version, &settings)
	return version, settings, err
}

func (f postgresFloor) close(ctx context.Context) error { return f.conn.Close(ctx) }
