package logtest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestPgBouncer opens a log four times at once through PgBouncer in transaction mode, which has fewer
// sessions than they use together, writes at all and follows. Nobody has said in the DSN that there is a
// pooler. Of those that open it one makes the log, and no lock is left behind.
func TestPgBouncer(t *testing.T) {
	direct := database{"postgres", Postgres(t)}
	db := database{"postgres", StartPgBouncer(t, direct.dsn)}
	logs, made := make([]log, 4), make(chan bool, 4)
	var wg sync.WaitGroup
	for i := range logs {
		wg.Go(func() {
			l, err := dialects.Open(t.Context(), db.dsn, dialects.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			logs[i] = log{l, t}
			made <- l.Made()
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	makers := 0
	for range logs {
		if <-made {
			makers++
		}
	}
	if makers != 1 {
		t.Errorf("%d have made the log", makers)
	}
	for i, l := range logs {
		defer l.Close()
		wg.Go(func() {
			for n := range 50 {
				key := fmt.Sprintf("/registry/%d/%d", i, n)
				a, err := l.Append(context.Background(), []changelog.Change{{Key: key, Value: []byte("x")}})
				if err != nil || a.Results[0].Revision == 0 {
					t.Errorf("append: %+v, %v", a, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if rows := logs[0].rows(); len(rows) != 200 {
		t.Errorf("%d rows, want 200", len(rows))
	}
	follow(t, logs[0], logs[1])
	logs[2].compact(100, 50)
	logs[3].check()
	execPostgres(t, direct.dsn, `DO $$ BEGIN
		IF EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) THEN
			RAISE EXCEPTION 'a lock was left behind';
		END IF;
	END $$`)
}
