package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// floor is a bare driver on one connection to the log's table, with the settings that the
// dialect uses. It does only what every append has to do: no lock, no
// expectation, no read of the rows before.
type floor interface {
	// insert writes rows durably in one transaction.
	insert(ctx context.Context, rows []row) error
	// describe returns the database's version and what a commit survives.
	describe(ctx context.Context) (version, settings string, err error)
	close(ctx context.Context) error
}

// row is one row of the log that is created once.
type row struct {
	id    int64
	key   string
	value []byte
}

// openFloor opens the bare driver on a database with the log's schema.
func openFloor(ctx context.Context, dsn string) (floor, error) {
	log, err := dialects.Open(ctx, dsn, dialects.Options{})
	if err != nil {
		return nil, err
	}
	if err := log.Close(); err != nil {
		return nil, err
	}
	switch dialects.Scheme(dsn) {
	case "postgres":
		return openPostgresFloor(ctx, dsn)
	case "mysql":
		return openMySQLFloor(ctx, dsn)
	}
	return openSQLiteFloor(ctx, dsn)
}

// keys is the number of keys that the writes of floor and store go through in turn: enough that
// hardly ever two writes of the same key are in flight, and few enough that the store's state stays
// small.
const keys = 10_000

func keyOf(i int64) string { return fmt.Sprintf("%sbench/cm-%05d", configMaps, i%keys) }

var configMaps = object.Prefix("", "configmaps")

// valueOf is an object of 1 KiB as the log stores it.
func valueOf(i int64) []byte {
	value := fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"cm-%05d","namespace":"bench"},"data":{"n":"%012d","pad":"`, i%keys, i)
	return append(append(value, strings.Repeat("x", 1024-len(value)-3)...), `"}}`...)
}

// floorLoad inserts transactions of n rows for the time d. It counts rows as operations.
func floorLoad(ctx context.Context, f floor, next *int64, n int, d time.Duration) (measure.Load, error) {
	rows := make([]row, n)
	l, err := measure.ClosedLoop(ctx, 1, d, func(ctx context.Context, _ int) error {
		for i := range rows {
			*next++
			rows[i] = row{*next, keyOf(*next), valueOf(*next)}
		}
		return f.insert(ctx, rows)
	})
	l.Ops *= n
	return l, err
}
