package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/transfer"
)

// TestIntake fills a log on each dialect, in pages, and with changes that are written again, as after a
// commit whose end nobody knows.
func TestIntake(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		ctx, log := t.Context(), openDSN(t, d.Fresh(t))
		in, err := transfer.BeginIntake(ctx, log, transfer.IntakeOptions{Source: "test", Above: 1000})
		if err != nil {
			t.Fatal(err)
		}
		write := func(in *transfer.Intake, changes ...changelog.Change) {
			t.Helper()
			if err := in.Write(ctx, changes); err != nil {
				t.Fatal(err)
			}
		}
		put := func(name, value string) changelog.Change {
			return changelog.Change{Key: "/registry/core/configmaps/n/" + name, Value: []byte(value)}
		}
		remove := func(name string) changelog.Change {
			return changelog.Change{Key: "/registry/core/configmaps/n/" + name, Delete: true}
		}
		var many []changelog.Change
		for i := range 600 {
			many = append(many, put(fmt.Sprintf("many-%d", i), `{"n":0}`))
		}
		write(in, many...)
		for _, c := range many {
			write(in, changelog.Change{Key: c.Key, Delete: true})
		}
		write(in, put("a", `{"n":1}`), put("b", `{"n":1}`), remove("none"))
		write(in, put("a", `{"n":2}`), remove("b"), put("c", `{"n":1}`))
		write(in, put("a", `{"n":2}`), remove("b"))
		if err := changelog.HalfCopied(ctx, log); !errors.Is(err, changelog.ErrHalfCopied) {
			t.Errorf("before the end: %v", err)
		}
		if _, err := transfer.BeginIntake(ctx, log, transfer.IntakeOptions{}); !errors.Is(err, changelog.ErrHalfCopied) {
			t.Errorf("another intake: %v", err)
		}
		if err := in.Finish(ctx); err != nil {
			t.Fatal(err)
		}
		if err := changelog.HalfCopied(ctx, log); err != nil {
			t.Error(err)
		}
		head, err := log.Head(ctx)
		if err != nil || head.Floor <= 1000 {
			t.Errorf("the floor is %d, %v", head.Floor, err)
		}
		rows, err := log.State(ctx, "", changelog.End, head.Revision, 10)
		got := map[string]string{}
		for _, r := range rows {
			got[r.Key] = string(r.Value)
		}
		want := map[string]string{"/registry/core/configmaps/n/a": `{"n":2}`, "/registry/core/configmaps/n/c": `{"n":1}`}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v, %s", err, diff)
		}
		if _, err := transfer.BeginIntake(ctx, log, transfer.IntakeOptions{}); !errors.Is(err, changelog.ErrNotEmpty) || errors.Is(err, changelog.ErrHalfCopied) {
			t.Errorf("an intake after the end: %v", err)
		}
	})
}

// TestIntakeAgain begins an intake that did not finish a second time: objects are written anew, above the
// revisions that the source has come to, what is not in the source any more is deleted, and the first intake
// writes nothing more.
func TestIntakeAgain(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		ctx, log := t.Context(), openDSN(t, d.Fresh(t))
		const prefix = "/registry/core/configmaps/n/"
		begin := func(above int64) *transfer.Intake {
			t.Helper()
			in, err := transfer.BeginIntake(ctx, log, transfer.IntakeOptions{Source: "test", Above: above})
			if err != nil {
				t.Fatal(err)
			}
			return in
		}
		write := func(in *transfer.Intake, from, to int, value string) error {
			var changes []changelog.Change
			for i := from; i < to; i++ {
				changes = append(changes, changelog.Change{Key: fmt.Sprintf("%s%04d", prefix, i), Value: []byte(value)})
			}
			return in.Write(ctx, changes)
		}
		cutOff := begin(1000)
		if err := write(cutOff, 0, 700, `{"n":1}`); err != nil {
			t.Fatal(err)
		}
		if _, err := transfer.BeginIntake(ctx, log, transfer.IntakeOptions{Source: "other"}); !errors.Is(err, changelog.ErrHalfCopied) {
			t.Errorf("an intake from another source: %v", err)
		}
		again := begin(5000)
		if err := write(cutOff, 0, 1, `{"n":3}`); !errors.Is(err, transfer.ErrOvertaken) {
			t.Errorf("the first intake goes on: %v", err)
		}
		if err := cutOff.Finish(ctx); !errors.Is(err, transfer.ErrOvertaken) {
			t.Errorf("the first intake finishes: %v", err)
		}
		if err := write(again, 600, 800, `{"n":2}`); err != nil {
			t.Fatal(err)
		}
		if err := again.Finish(ctx); err != nil {
			t.Fatal(err)
		}
		marks, err := log.Marks(ctx)
		if err != nil || changelog.IsHalfCopied(marks) || marks["copying-run"] != "" {
			t.Errorf("%v, %v", marks, err)
		}
		head, err := log.Head(ctx)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := log.State(ctx, "", changelog.End, head.Revision, 1000)
		if err != nil || len(rows) != 200 {
			t.Fatalf("%d objects, %v", len(rows), err)
		}
		for i, r := range rows {
			if r.Key != fmt.Sprintf("%s%04d", prefix, 600+i) || string(r.Value) != `{"n":2}` || r.Revision <= 5000 {
				t.Errorf("%s at %d: %s", r.Key, r.Revision, r.Value)
			}
		}
	})
}

// lostLog loses the answer of the next Append.
type lostLog struct {
	changelog.Log
	lose bool
}

func (l *lostLog) Append(ctx context.Context, batch []changelog.Change) (changelog.Appended, error) {
	appended, err := l.Log.Append(ctx, batch)
	if l.lose && err == nil {
		l.lose = false
		return changelog.Appended{}, changelog.ErrUnknown
	}
	return appended, err
}

// TestIntakeUnknown writes again what may have been written: a new key, a change, and a delete.
func TestIntakeUnknown(t *testing.T) {
	ctx, log := t.Context(), &lostLog{Log: openDSN(t, logtest.SQLite(t))}
	in, err := transfer.BeginIntake(ctx, log, transfer.IntakeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const key = "/registry/core/configmaps/n/a"
	for _, step := range []struct {
		change changelog.Change
		rows   int
	}{
		{changelog.Change{Key: key, Value: []byte(`{"n":1}`)}, 1},
		{changelog.Change{Key: key, Value: []byte(`{"n":2}`)}, 1},
		{changelog.Change{Key: key, Delete: true}, 0},
		{changelog.Change{Key: key, Value: []byte(`{"n":3}`)}, 1},
	} {
		log.lose = true
		if err := in.Write(ctx, []changelog.Change{step.change}); !errors.Is(err, changelog.ErrUnknown) {
			t.Errorf("%v", err)
		}
		if err := in.Write(ctx, []changelog.Change{step.change}); err != nil {
			t.Errorf("again: %v", err)
		}
		head, err := log.Head(ctx)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := log.State(ctx, "", changelog.End, head.Revision, 10)
		if err != nil || len(rows) != step.rows || len(rows) == 1 && string(rows[0].Value) != string(step.change.Value) {
			t.Errorf("%+v, %v", rows, err)
		}
	}
}
