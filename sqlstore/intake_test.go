package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore"
)

// TestIntake fills a log on each dialect, in pages, and with changes that are written again, as after a
// commit whose end nobody knows.
func TestIntake(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		ctx, log := t.Context(), openDSN(t, d.Fresh(t))
		in, err := sqlstore.BeginIntake(ctx, log, sqlstore.IntakeOptions{Source: "test", Above: 1000, Changes: true})
		if err != nil {
			t.Fatal(err)
		}
		write := func(in *sqlstore.Intake, changes ...sqlstore.Change) {
			t.Helper()
			if err := in.Write(ctx, changes); err != nil {
				t.Fatal(err)
			}
		}
		put := func(name, value string) sqlstore.Change {
			return sqlstore.Change{Key: "/registry/core/configmaps/n/" + name, Value: []byte(value)}
		}
		remove := func(name string) sqlstore.Change {
			return sqlstore.Change{Key: "/registry/core/configmaps/n/" + name, Delete: true}
		}
		var many []sqlstore.Change
		for i := range 600 {
			many = append(many, put(fmt.Sprintf("many-%d", i), `{"n":0}`))
		}
		write(in, many...)
		for _, c := range many {
			write(in, sqlstore.Change{Key: c.Key, Delete: true})
		}
		write(in, put("a", `{"n":1}`), put("b", `{"n":1}`), remove("none"))
		write(in, put("a", `{"n":2}`), remove("b"), put("c", `{"n":1}`))
		write(in, put("a", `{"n":2}`), remove("b"))
		if err := sqlstore.HalfCopied(ctx, log); !errors.Is(err, sqlstore.ErrHalfCopied) {
			t.Errorf("before the end: %v", err)
		}
		if _, err := sqlstore.BeginIntake(ctx, log, sqlstore.IntakeOptions{}); !errors.Is(err, sqlstore.ErrHalfCopied) {
			t.Errorf("another intake: %v", err)
		}
		if err := in.Finish(ctx); err != nil {
			t.Fatal(err)
		}
		if err := sqlstore.HalfCopied(ctx, log); err != nil {
			t.Error(err)
		}
		head, err := log.Head(ctx)
		if err != nil || head.Floor <= 1000 {
			t.Errorf("the floor is %d, %v", head.Floor, err)
		}
		rows, err := log.State(ctx, "", sqlstore.End, head.Revision, 10)
		got := map[string]string{}
		for _, r := range rows {
			got[r.Key] = string(r.Value)
		}
		want := map[string]string{"/registry/core/configmaps/n/a": `{"n":2}`, "/registry/core/configmaps/n/c": `{"n":1}`}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v, %s", err, diff)
		}
		if _, err := sqlstore.BeginIntake(ctx, log, sqlstore.IntakeOptions{}); !errors.Is(err, sqlstore.ErrNotEmpty) || errors.Is(err, sqlstore.ErrHalfCopied) {
			t.Errorf("an intake after the end: %v", err)
		}
	})
}

// lostLog loses the answer of the next Append.
type lostLog struct {
	sqlstore.Log
	lose bool
}

func (l *lostLog) Append(ctx context.Context, batch []sqlstore.Change) (sqlstore.Appended, error) {
	appended, err := l.Log.Append(ctx, batch)
	if l.lose && err == nil {
		l.lose = false
		return sqlstore.Appended{}, sqlstore.ErrUnknown
	}
	return appended, err
}

// TestIntakeUnknown writes again what may have been written: a new key, a change, and a delete.
func TestIntakeUnknown(t *testing.T) {
	ctx, log := t.Context(), &lostLog{Log: openDSN(t, logtest.SQLite(t))}
	in, err := sqlstore.BeginIntake(ctx, log, sqlstore.IntakeOptions{Changes: true})
	if err != nil {
		t.Fatal(err)
	}
	const key = "/registry/core/configmaps/n/a"
	for _, step := range []struct {
		change sqlstore.Change
		rows   int
	}{
		{sqlstore.Change{Key: key, Value: []byte(`{"n":1}`)}, 1},
		{sqlstore.Change{Key: key, Value: []byte(`{"n":2}`)}, 1},
		{sqlstore.Change{Key: key, Delete: true}, 0},
		{sqlstore.Change{Key: key, Value: []byte(`{"n":3}`)}, 1},
	} {
		log.lose = true
		if err := in.Write(ctx, []sqlstore.Change{step.change}); !errors.Is(err, sqlstore.ErrUnknown) {
			t.Errorf("%v", err)
		}
		if err := in.Write(ctx, []sqlstore.Change{step.change}); err != nil {
			t.Errorf("again: %v", err)
		}
		head, err := log.Head(ctx)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := log.State(ctx, "", sqlstore.End, head.Revision, 10)
		if err != nil || len(rows) != step.rows || len(rows) == 1 && string(rows[0].Value) != string(step.change.Value) {
			t.Errorf("%+v, %v", rows, err)
		}
	}
}
