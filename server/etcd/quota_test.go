package etcd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// When the database has reached its quota, the alarm is raised and stays until it is disarmed.
func TestQuota(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		m := serveOn(t, dsn, false, Options{})
		size, err := m.store.Source().Size(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m.stop()
		m = serveOn(t, dsn, false, Options{QuotaBackendBytes: size.Bytes + 4<<20})
		value := make([]byte, 64<<10)
		rand.NewChaCha8([32]byte{}).Read(value) // or Postgres makes it small
		puts := 0
		eventually(t, "full", func() bool {
			err := m.admit(t.Context(), putCost+len(value))
			if err == nil {
				m.put(t, fmt.Sprint("key", puts), string(value), 0)
				puts++
			}
			return err == rpctypes.ErrGRPCNoSpace
		})
		most := 64
		if d.Name == "mariadb" {
			most = 2000 // the server tells some seconds late what a table takes
		}
		if puts < 10 || puts > most {
			t.Errorf("4 MiB were full after %d puts of 64 KiB", puts)
		}
		if got, want := m.alarm(t, alarmGet, noAlarm, 0), fmt.Sprintf("NOSPACE/%d", m.memberID); got != want {
			t.Errorf("alarms: %q, want %q", got, want)
		}
		if !m.noSpace() || m.admit(t.Context(), 0) != nil {
			t.Error("puts are to be refused, and nothing else")
		}
		m.stop()
		m = serveOn(t, dsn, false, Options{QuotaBackendBytes: -1})
		wantError(t, "put with the alarm of before", m.admit(t.Context(), 1), rpctypes.ErrGRPCNoSpace)
		m.alarm(t, alarmOff, alarmFull, m.memberID)
		if err := m.admit(t.Context(), 1); err != nil {
			t.Errorf("put without a quota: %v", err)
		}
	})
}

// The database is not asked at each write, but when what was written may have filled it.
func TestQuotaMeasures(t *testing.T) {
	asked, bytes, fail := 0, int64(100), error(nil)
	var q quota
	q.init(1000, func(context.Context) (changelog.Size, error) { asked++; return changelog.Size{Bytes: bytes}, fail })
	for range 80 {
		if q.exceeded(t.Context(), 10) {
			t.Fatal("full too early")
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times for 80 writes", asked)
	}
	bytes = 500
	q.earliest = time.Time{}
	if q.exceeded(t.Context(), 200) || asked != 2 {
		t.Errorf("asked %d times when what was written could have filled it", asked)
	}
	bytes = 995
	q.earliest = time.Time{}
	if !q.exceeded(t.Context(), 400) || asked != 3 {
		t.Errorf("not full after %d questions", asked)
	}
	if !q.exceeded(t.Context(), 0) || asked != 3 {
		t.Errorf("asked %d times within a moment", asked)
	}
	fail = errors.New("away")
	q.earliest = time.Time{}
	if !q.exceeded(t.Context(), 0) || asked != 4 {
		t.Error("not full when the database is away")
	}
	bytes, fail = 10, nil
	q.earliest = time.Time{}
	if q.exceeded(t.Context(), 0) || asked != 5 {
		t.Error("full after space was freed")
	}
}
