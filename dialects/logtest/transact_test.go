package logtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

func TestTransact(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.openRaw(t)
		if r := l.write(op{key: "a", value: "a1", lease: 7}, put("b", "b1")); r != 1 {
			t.Errorf("first revision %d", r)
		}
		l.write(put("a", "a2"), del("b"))
		l.write(put("b", "b3"))
		id := changelog.FirstID
		want := []changelog.Row{
			{Revision: id(1), Key: "a", CreateRevision: id(1), Value: []byte("a1"), Version: 1, Lease: 7},
			{Revision: id(1) + 1, Key: "b", CreateRevision: id(1) + 1, Value: []byte("b1"), Version: 1},
			{Revision: id(2), Key: "a", CreateRevision: id(1), Value: []byte("a2"), Version: 2},
			{Revision: id(2) + 1, Key: "b", CreateRevision: id(1) + 1, Deleted: true, Value: []byte{}},
			{Revision: id(3), Key: "b", CreateRevision: id(3), Value: []byte("b3"), Version: 1},
		}
		diff(t, "rows", want, forget(l.rows()))
		diff(t, "head", changelog.Head{Revision: id(3)}, l.head())
		diff(t, "state", []changelog.Row{want[2], want[4]}, forget(l.state("", changelog.End, changelog.LastID(3))))
		diff(t, "state at 1", want[:2], forget(l.state("", changelog.End, changelog.LastID(1))))
		steps := forgetSteps(l.steps("", changelog.End, changelog.LastID(1), changelog.LastID(3)))
		diff(t, "steps", []changelog.Step{{Row: want[2], Prev: &want[0]}, {Row: want[3], Prev: &want[1]}, {Row: want[4]}}, steps)

		keys, err := l.Keys(t.Context(), "", "b", changelog.LastID(1), 10)
		if err != nil {
			t.Fatal(err)
		}
		bare := want[0]
		bare.Value = nil
		diff(t, "keys", []changelog.Row{bare}, forget(keys))

		var found changelog.Found
		err = l.Transact(t.Context(), changelog.Ask{After: id(1), Limit: 2}, func(f *changelog.Found) (d changelog.Decision, err error) {
			found = *f
			return d, nil
		})
		if err != nil || found.Revision != id(3) || found.Floor != 0 || found.At == 0 || found.Now == 0 || found.Leases != nil {
			t.Errorf("found %+v, %v", found, err)
		}
		diff(t, "rows found", want[1:3], forget(found.Rows))
	})
}

// TestTransactErrors: what decide refuses is not written, and its error is the caller's.
func TestTransactErrors(t *testing.T) {
	no := errors.New("no")
	forEach(t, func(t *testing.T, db database) {
		l := db.openRaw(t)
		l.write(put("a", "1"))
		before := l.rows()
		transact := func(d changelog.Decision, refuse error) error {
			return l.Transact(context.Background(), changelog.Ask{}, func(f *changelog.Found) (changelog.Decision, error) {
				d.Rows = slices.Clone(d.Rows)
				for i := range d.Rows {
					d.Rows[i].At = f.At
				}
				return d, refuse
			})
		}
		row := changelog.Row{Revision: changelog.FirstID(2), Key: "b", CreateRevision: changelog.FirstID(2), Version: 1}
		grant := []changelog.Lease{{ID: 1, TTL: 1, Expires: 1}}
		if err := transact(changelog.Decision{Rows: []changelog.Row{row}, Grant: grant}, no); err != no {
			t.Errorf("refused: %v", err)
		}
		for _, d := range []changelog.Decision{
			{Rows: before, Grant: grant},
			{Rows: []changelog.Row{row, row}, Grant: grant},
			{Rows: []changelog.Row{row}, Grant: []changelog.Lease{grant[0], grant[0]}},
		} {
			err := transact(d, nil)
			if err == nil || errors.Is(err, changelog.ErrUnknown) || errors.Is(err, changelog.ErrUnavailable) {
				t.Errorf("%+v: %v", d, err)
			}
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		err := l.Transact(ctx, changelog.Ask{}, func(*changelog.Found) (changelog.Decision, error) {
			return changelog.Decision{Rows: []changelog.Row{row}}, nil
		})
		if !errors.Is(err, context.Canceled) || errors.Is(err, changelog.ErrUnavailable) {
			t.Errorf("with a cancelled context: %v", err)
		}
		diff(t, "rows", before, l.rows())
		if ids := l.leases(); len(ids) != 0 {
			t.Errorf("leases %v", ids)
		}
		if err := transact(changelog.Decision{Rows: []changelog.Row{row}, Grant: grant}, nil); err != nil || len(l.rows()) != 2 {
			t.Errorf("after all: %v", err)
		}
	})
}

// TestLargeTransaction is more than a packet of some databases.
func TestLargeTransaction(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.openRaw(t)
		value := string(bytes.Repeat([]byte{0, '\''}, 500_000))
		var ops []op
		for i := range 20 {
			ops = append(ops, put(keyOf(i), value+strconv.Itoa(i)))
		}
		grants := make([]changelog.Lease, 2000)
		for i := range grants {
			grants[i] = changelog.Lease{ID: int64(i + 1), TTL: 1, Expires: 1 << 50}
		}
		l.do(changelog.Decision{Grant: grants}, ops...)
		rows := l.rows()
		for i, r := range rows {
			if string(r.Value) != ops[i].value {
				t.Errorf("value %d is not what was written", i)
			}
		}
		if n := len(l.leases()); len(rows) != len(ops) || n != len(grants) {
			t.Errorf("%d rows and %d leases", len(rows), n)
		}
		revoke := make([]int64, len(grants))
		for i := range revoke {
			revoke[i] = grants[i].ID
		}
		l.do(changelog.Decision{Revoke: revoke[1:]})
		diff(t, "leases", []int64{1}, l.leases())
	})
}

// TestTransactProcesses lets processes count in one key: each transaction sees all before it.
func TestTransactProcesses(t *testing.T) {
	forEachShared(t, func(t *testing.T, db database) {
		const rounds = 50
		var wg sync.WaitGroup
		for p := range 3 {
			l := db.openRaw(t)
			wg.Go(func() {
				for range rounds {
					if err := l.increment(p); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		l := db.openRaw(t)
		rows := l.rows()
		if len(rows) != 2*3*rounds {
			t.Fatalf("%d rows", len(rows))
		}
		for i := 0; i < len(rows); i += 2 {
			revision, sub := changelog.Split(rows[i].Revision)
			next, second := changelog.Split(rows[i+1].Revision)
			if n := int64(i/2 + 1); revision != n || next != n || sub != 0 || second != 1 || string(rows[i].Value) != fmt.Sprint(n) || rows[i].Version != n {
				t.Fatalf("row %d: %+v, %+v", i, rows[i], rows[i+1])
			}
		}
	})
}

// increment adds one to the key "n", and writes a key of the process's own.
func (l *raw) increment(process int) error {
	var written []changelog.Row
	err := l.Transact(context.Background(), changelog.Ask{After: l.seen, Limit: 1000}, func(f *changelog.Found) (changelog.Decision, error) {
		l.learn(f.Rows)
		revision, _ := changelog.Split(f.Revision)
		n, _ := strconv.Atoi(string(l.newest["n"].Value))
		written = l.rowsOf(changelog.FirstID(revision+1), f.At, []op{put("n", strconv.Itoa(n+1)), put(fmt.Sprint("p", process), "x")})
		return changelog.Decision{Rows: written}, nil
	})
	if err == nil {
		l.learn(written)
	}
	return err
}

// TestTransactUnknown: a COMMIT that failed may have written, as with Append.
func TestTransactUnknown(t *testing.T) {
	forEachShared(t, func(t *testing.T, db database) {
		p, dsn := through(t, db.dsn)
		direct, l := db.openRaw(t), database{db.name, dsn}.openRaw(t)
		l.write(put("a", "1"))
		p.arm("LOST-VALUE", lose)
		if _, err := l.try(changelog.Decision{}, put("b", "LOST-VALUE")); !errors.Is(err, changelog.ErrUnknown) {
			t.Errorf("lost: %v", err)
		}
		p.disarm()
		if r := l.write(put("c", "2")); r != 2 {
			t.Errorf("revision %d after a lost one", r)
		}
		p.arm("PERSISTED-VALUE", swallow)
		result := make(chan error, 1)
		go func() {
			_, err := l.try(changelog.Decision{}, put("b", "PERSISTED-VALUE"))
			result <- err
		}()
		within(t, "row to appear", func(ctx context.Context) error { return reach(ctx, direct, changelog.FirstID(3)) })
		p.cut()
		if err := <-result; !errors.Is(err, changelog.ErrUnknown) {
			t.Errorf("persisted: %v", err)
		}
		p.disarm()
		if r := direct.write(put("d", "4")); r != 4 {
			t.Errorf("revision %d after a persisted one", r)
		}
	})
}

// TestTransactWakes: other processes hear of a transaction, and of a cut above the newest row.
func TestTransactWakes(t *testing.T) {
	forEachShared(t, func(t *testing.T, db database) {
		l, other := db.openRaw(t), db.openRaw(t)
		heads := make(chan int64, 1000)
		ctx, cancel := context.WithCancel(t.Context())
		var follower sync.WaitGroup
		follower.Go(func() { other.Follow(ctx, changelog.Follower{Hint: func(head int64) { heads <- head }}) })
		hear := func(head int64) {
			t.Helper()
			within(t, fmt.Sprint("hint of ", head), func(ctx context.Context) error {
				for {
					select {
					case h := <-heads:
						if h == head {
							return nil
						}
					case <-ctx.Done():
						return ctx.Err()
					}
				}
			})
		}
		l.write(put("a", "1"), put("b", "1"))
		hear(changelog.FirstID(1) + 1)
		if _, err := l.Cut(t.Context(), changelog.LastID(1)); err != nil {
			t.Error(err)
		}
		hear(changelog.LastID(1))
		cancel()
		follower.Wait()
	})
}

// TestCut moves the floor to the end of the newest revision.
func TestCut(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.openRaw(t)
		l.write(put("a", "1"), put("b", "1"), put("c", "1"))
		l.write(put("a", "2"), del("b"))
		l.write(put("a", "3"))
		l.write(put("d", "4"))
		cut := func(through, want int64) {
			t.Helper()
			if found, err := l.Cut(t.Context(), through); err != nil || found != want {
				t.Errorf("cut to %d found %d, %v; want %d", through, found, err, want)
			}
		}
		last := changelog.LastID(4)
		cut(changelog.LastID(2), 0)
		cut(changelog.LastID(1), changelog.LastID(2))
		cut(last, changelog.LastID(2))
		cut(last, last)
		if n := len(l.rows()); n != 7 {
			t.Errorf("%d rows after the cut, which only Compact deletes", n)
		}
		diff(t, "head", changelog.Head{Revision: last, Floor: last}, l.head())
		below := last - 1
		_, stateErr := l.State(t.Context(), "", changelog.End, below, 10)
		_, keysErr := l.Keys(t.Context(), "", changelog.End, below, 10)
		_, countErr := l.Count(t.Context(), "", changelog.End, below)
		_, stepsErr := l.Steps(t.Context(), "", changelog.End, below, last, 10)
		for i, err := range []error{stateErr, keysErr, countErr, stepsErr} {
			if !errors.Is(err, changelog.ErrCompacted) {
				t.Errorf("read %d below the floor: %v", i, err)
			}
		}
		state := l.state("", changelog.End, last)
		if steps := l.steps("", changelog.End, last, last); len(state) != 3 || len(steps) != 0 {
			t.Errorf("at the floor: %+v, %+v", state, steps)
		}
		if c, err := l.Compact(t.Context(), last, 2, nil); err != nil || c.Floor != last {
			t.Errorf("first step of compaction: %+v, %v", c, err)
		}
		for swept := int64(-1); ; {
			c, err := l.Compact(t.Context(), last, 100, nil)
			if err != nil || c.Floor != last {
				t.Fatalf("compaction: %+v, %v", c, err)
			}
			if c.Swept == swept { // up to the row before the newest
				break
			}
			swept = c.Swept
		}
		diff(t, "head after compaction", changelog.Head{Revision: last, Floor: last}, l.head())
		diff(t, "state after compaction", state, l.state("", changelog.End, last))
		if n := len(l.rows()); n != 3 {
			t.Errorf("%d rows after compaction", n)
		}
		if r := l.write(del("d"), put("b", "5")); r != 5 {
			t.Errorf("revision %d after the cut", r)
		}
	})
}

// TestRawReads reads keys of all bytes in their order, with bounds close to them.
func TestRawReads(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.openRaw(t)
		keys := bytesKeys()
		for i := 0; i < len(keys); i += 50 {
			var ops []op
			for _, key := range keys[i:min(i+50, len(keys))] {
				ops = append(ops, put(key, "v"+key))
			}
			l.write(ops...)
		}
		slices.Sort(keys)
		head := l.head().Revision
		var got []string
		for _, r := range l.state("", changelog.End, head) {
			if string(r.Value) != "v"+r.Key {
				t.Errorf("value of %q is %q", r.Key, r.Value)
			}
			got = append(got, r.Key)
		}
		diff(t, "keys", keys, got)
		for i := 0; i < len(keys); i += 17 {
			for _, r := range [][2]string{{keys[i], keys[i] + "\x00"}, {keys[i], changelog.End}, {"", keys[i]}, {keys[i] + "\x00", keys[i] + "\xff"}} {
				want := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return k < r[0] || k >= r[1] })
				rows, err := l.Keys(t.Context(), r[0], r[1], head, 1000)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, row := range rows {
					got = append(got, row.Key)
				}
				if !slices.Equal(want, got) {
					t.Errorf("keys in [%q, %q): %q, want %q", r[0], r[1], got, want)
				}
				if n, err := l.Count(t.Context(), r[0], r[1], head); err != nil || int(n) != len(want) {
					t.Errorf("count in [%q, %q): %d, %v, want %d", r[0], r[1], n, err, len(want))
				}
				if steps := l.steps(r[0], r[1], 0, head); len(steps) != len(want) {
					t.Errorf("%d steps in [%q, %q), want %d", len(steps), r[0], r[1], len(want))
				}
			}
		}
	})
}

// bytesKeys are keys with every byte, keys that follow each other closely, and the longest.
func bytesKeys() (keys []string) {
	for c := range 256 {
		keys = append(keys, string([]byte{byte(c)}), string([]byte{'k', byte(c)}))
	}
	for _, b := range []byte{0, 1, 2, 0x7f, 0x80, 0xff} {
		keys = append(keys, string(bytes.Repeat([]byte{b}, changelog.MaxKeyBytes)), "x\x00"+string([]byte{b}), "x\x01"+string([]byte{b}), "\xc3"+string([]byte{b}))
	}
	return append(keys, "/registry/日本/ü", "''", `\\`, "%_", "  ", "a ")
}

func TestValues(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.openRaw(t)
		var ops []op
		ids := []int64{5}
		for i := range 2500 {
			ops = append(ops, put(keyOf(i), strconv.Itoa(i)))
			ids = append(ids, changelog.FirstID(1)+int64(i))
		}
		l.write(ops...)
		l.write(put(keyOf(0), ""))
		ids = append(ids, changelog.FirstID(2), changelog.FirstID(3))
		values, err := l.Values(t.Context(), ids)
		if err != nil || len(values) != 2501 {
			t.Fatalf("%d values, %v", len(values), err)
		}
		for i := range 2500 {
			if got := string(values[changelog.FirstID(1)+int64(i)]); got != strconv.Itoa(i) {
				t.Fatalf("value %d is %q", i, got)
			}
		}
		if v, ok := values[changelog.FirstID(2)]; !ok || len(v) != 0 {
			t.Errorf("empty value: %q, %v", v, ok)
		}
		if values, err := l.Values(t.Context(), nil); err != nil || len(values) != 0 {
			t.Errorf("no ids: %v, %v", values, err)
		}
	})
}
