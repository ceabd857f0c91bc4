package logtest

import (
	"context"
	"log/slog"
	"strconv"
	"testing"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestSettled: what one server has read of another's rows survives the death of the database. The
// writer's commits are not on the disk when they are read, as for a moment with each commit of InnoDB;
// here for as long as a second, because the setting is another one while they are made.
func TestSettled(t *testing.T) {
	server := StartMariaDB(t)
	flush := func(when string) { execMySQL(t, server.DSN(""), "SET GLOBAL innodb_flush_log_at_trx_commit = "+when) }
	for name, c := range map[string]struct {
		kind changelog.Kind
		read func(ctx context.Context, l changelog.Log, after, head int64) error
	}{
		"rows": {changelog.KindAPI, func(ctx context.Context, l changelog.Log, after, _ int64) error {
			rows, err := l.Rows(ctx, after, 10)
			if err == nil && len(rows) != 1 {
				t.Errorf("%d rows", len(rows))
			}
			return err
		}},
		"state": {changelog.KindAPI, func(ctx context.Context, l changelog.Log, _, head int64) error {
			_, err := l.State(ctx, first, end, head, 10)
			return err
		}},
		"raw keys": {changelog.KindEtcd, func(ctx context.Context, l changelog.Log, _, head int64) error {
			_, err := l.Keys(ctx, "", changelog.End, head, 10)
			return err
		}},
		"transaction": {changelog.KindEtcd, func(ctx context.Context, l changelog.Log, after, _ int64) error {
			return l.Transact(ctx, changelog.Ask{After: after, Limit: 10}, func(f *changelog.Found) (d changelog.Decision, err error) {
				if len(f.Rows) != 1 {
					t.Errorf("%d rows are found", len(f.Rows))
				}
				return d, nil
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := CreateDatabase(t, server)
			open := func() changelog.Log {
				l, err := dialects.Open(t.Context(), dsn, dialects.Options{Kind: c.kind, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { l.Close() })
				return l
			}
			writer, reader := open(), open()
			keys := &raw{log: log{writer, t}, newest: map[string]changelog.Row{}}
			var after int64
			for i := range 3 {
				flush("0")
				if c.kind == changelog.KindAPI {
					log{writer, t}.put("/registry/"+strconv.Itoa(i), 0, "1")
				} else {
					keys.write(op{key: strconv.Itoa(i), value: "1"})
				}
				flush("1")
				head, err := reader.Head(t.Context())
				if err == nil {
					err = c.read(t.Context(), reader, after, head.Revision)
				}
				if err != nil {
					t.Fatal(err)
				}
				server.Kill()
				if err := server.Start(); err != nil {
					t.Fatal(err)
				}
				within(t, "recovery", func(ctx context.Context) error { _, err := reader.Head(ctx); return err })
				if now := (log{reader, t}).head(); now.Revision < head.Revision {
					t.Fatalf("revision %d was read, and the database has %d after it was killed", head.Revision, now.Revision)
				}
				after = head.Revision
			}
		})
	}
}
