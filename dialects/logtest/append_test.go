package logtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

func TestAppendExpectations(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.open(t)
		diff(t, "empty head", changelog.Head{}, l.head())
		a := l.append(
			changelog.Change{Key: "/registry/a", Value: []byte("a1")},
			changelog.Change{Key: "/registry/b", Expect: 1, Value: []byte("no")},
			changelog.Change{Key: "/registry/c", Value: []byte("c1")},
			changelog.Change{Key: "/registry/d", Delete: true, Expect: 9, Value: []byte("no")},
		)
		diff(t, "first batch", []changelog.Result{{Revision: 1, CreateRevision: 1}, {}, {Revision: 2, CreateRevision: 2}, {}}, a.Results)
		a = l.append(
			changelog.Change{Key: "/registry/a", Value: []byte("no")},                          // exists
			changelog.Change{Key: "/registry/c", Expect: 1, Value: []byte("no")},               // other revision
			changelog.Change{Key: "/registry/b", Value: []byte("b3")},                          // holds
			changelog.Change{Key: "/registry/x", Delete: true, Value: []byte("no")},            // nothing to delete
			changelog.Change{Key: "/registry/y", Expect: 2, Delete: true, Value: []byte("no")}, // not there
		)
		diff(t, "second batch", changelog.Appended{Head: 2, At: a.At, Results: []changelog.Result{
			{Found: 1}, {Found: 2}, {Revision: 3, CreateRevision: 3}, {}, {},
		}}, a)
		l.put("/registry/a", 1, "a4")
		a = l.append(changelog.Change{Key: "/registry/a", Expect: 1, Delete: true, Value: []byte("no")})
		diff(t, "delete of a state that was replaced", []changelog.Result{{Found: 4}}, a.Results)
		a = l.append(
			changelog.Change{Key: "/registry/a", Expect: 1, Delete: true, Value: []byte("no")},
			changelog.Change{Key: "/registry/c", Expect: 1, Delete: true, Value: []byte("no")},
		)
		diff(t, "two of them", []changelog.Result{{Found: 4}, {Found: 2}}, a.Results)
		l.delete("/registry/a", 4, "a4 at its end")
		a = l.append(changelog.Change{Key: "/registry/a", Expect: 5, Value: []byte("no")})
		diff(t, "update of a tombstone", []changelog.Result{{Found: 5, FoundDeleted: true}}, a.Results)
		a = l.append(changelog.Change{Key: "/registry/a", Value: []byte("a6")})
		diff(t, "recreate", []changelog.Result{{Revision: 6, CreateRevision: 6}}, a.Results)
		l.put("/registry/a", 6, "a7")

		diff(t, "rows", []changelog.Row{
			{Revision: 1, Key: "/registry/a", CreateRevision: 1, Value: []byte("a1")},
			{Revision: 2, Key: "/registry/c", CreateRevision: 2, Value: []byte("c1")},
			{Revision: 3, Key: "/registry/b", CreateRevision: 3, Value: []byte("b3")},
			{Revision: 4, Key: "/registry/a", CreateRevision: 1, Value: []byte("a4")},
			{Revision: 5, Key: "/registry/a", CreateRevision: 1, Deleted: true, Value: []byte("a4 at its end")},
			{Revision: 6, Key: "/registry/a", CreateRevision: 6, Value: []byte("a6")},
			{Revision: 7, Key: "/registry/a", CreateRevision: 6, Value: []byte("a7")},
		}, forget(l.rows()))
		diff(t, "head", changelog.Head{Revision: 7}, l.head())
	})
}

// TestRoundTrips counts what is sent for an append: once for a lone change that holds, twice for several.
func TestRoundTrips(t *testing.T) {
	forEachShared(t, func(t *testing.T, db database) {
		p, dsn := through(t, db.dsn)
		l := log{openDSN(t, dsn), t}
		defer l.Close()
		n := 0
		for changes, want := range map[int]int64{1: 1, 2: 2} {
			least := int64(100) // a first one may prepare statements, or open a connection
			for range 5 {
				var batch []changelog.Change
				for range changes {
					n++
					batch = append(batch, changelog.Change{Key: keyOf(n), Value: []byte("x")})
				}
				before := p.sent.Load()
				l.append(batch...)
				least = min(least, p.sent.Load()-before)
			}
			if least != want {
				t.Errorf("%d changes: %d round trips, want %d", changes, least, want)
			}
		}
	})
}

func TestKeysAreBytes(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.open(t)
		keys := []string{
			"/registry/core/pods/a-b/x", "/registry/core/pods/a/x", "/registry/core/pods/a.b/x", "/registry/core/pods/a0/x",
			"/registry/core/pods/A/x", "/registry/core/pods/Z/x", "/registry/core/pods/ä/x", "/registry/core/pods/a\u0308/x",
			"/registry/core/pods/ß/x", "/registry/core/pods/ss/x", "/registry/core/pods/a/x ", "/registry/core/pods/a/X",
			"/registry/core/pods/a_/x", "/registry/core/pods/a%/x", `/registry/core/pods/a\/x`, "/registry/core/pods/a'/x", "/registry/core/pods/日本/x",
			"/registry/core/pods/" + strings.Repeat("n", 63) + "/" + strings.Repeat("x", 900),
		}
		var batch []changelog.Change
		for _, key := range keys {
			batch = append(batch, changelog.Change{Key: key, Value: []byte(key)})
		}
		for i, r := range l.append(batch...).Results {
			if r.Revision != int64(i+1) {
				t.Errorf("%q: %+v", keys[i], r)
			}
		}
		slices.Sort(keys)
		var got []string
		for _, r := range l.state(first, end, int64(len(keys))) {
			got = append(got, r.Key)
		}
		diff(t, "key order", keys, got)
		from, to := changelog.RangeOf("/registry/core/pods/a/")
		n, err := l.Count(context.Background(), from, to, int64(len(keys)))
		if err != nil || n != 3 {
			t.Errorf("count of a/: %d, %v", n, err)
		}
	})
}

// A database that compresses what it indexes would take a longer key of one letter, so
// these are as random as printable ASCII allows.
func TestLongestKey(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	longest := func() string {
		key := []byte("/registry/core/pods/")
		for len(key) < changelog.MaxKeyBytes {
			key = append(key, byte('!'+random.IntN('~'-'!'+1)))
		}
		return string(key)
	}
	keys := []string{longest(), longest(), "/registry/core/pods/" + strings.Repeat("日", (changelog.MaxKeyBytes-20)/3) + "aa"}
	forEach(t, func(t *testing.T, db database) {
		l := db.open(t)
		for i, key := range keys {
			l.put(key, l.put(key, 0, "new"), "again")
			from, to := changelog.RangeOf(key)
			if rows := l.state(from, to, l.head().Revision); len(rows) != 1 || rows[0].Key != key {
				t.Errorf("key %d of %d bytes is not what was written: %+v", i, len(key), rows)
			}
		}
	})
}

func TestValuesAreBytes(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.open(t)
		every := make([]byte, 256)
		for i := range every {
			every[i] = byte(i)
		}
		large := make([]byte, 1<<20)
		random := rand.NewChaCha8([32]byte{1})
		_, _ = random.Read(large)
		quotes := bytes.Repeat([]byte(`'"\`+"\x00\n"), 200_000) // what doubles when it is quoted
		values := [][]byte{{}, every, large, quotes, []byte("ä\u2028日本")}
		var batch []changelog.Change
		for i, v := range values {
			batch = append(batch, changelog.Change{Key: keyOf(i), Value: v})
		}
		l.append(batch...)
		for i, r := range l.rows() {
			if !bytes.Equal(r.Value, values[i]) {
				t.Errorf("value %d is not what was written (%d bytes, %d written)", i, len(r.Value), len(values[i]))
			}
		}
	})
}

func TestLargeBatch(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.open(t)
		var batch []changelog.Change
		for i := range 512 {
			batch = append(batch, changelog.Change{Key: keyOf(i), Value: bytes.Repeat([]byte{'x'}, 8<<10)})
		}
		a := l.append(batch...)
		for i := range batch {
			if a.Results[i].Revision != int64(i+1) {
				t.Fatalf("change %d: %+v", i, a.Results[i])
			}
			batch[i].Expect = int64(i + 1)
			if i%3 == 0 {
				batch[i].Expect++
			}
		}
		a = l.append(batch...)
		next := int64(513)
		for i, r := range a.Results {
			want := changelog.Result{Found: int64(i + 1)}
			if i%3 != 0 {
				want = changelog.Result{Revision: next, CreateRevision: int64(i + 1)}
				next++
			}
			if r != want {
				t.Fatalf("change %d: %+v, want %+v", i, r, want)
			}
		}
	})
}

// TestEmptyBatch: a batch of nothing asks whether the log can be written to now.
func TestEmptyBatch(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.open(t)
		l.put("/registry/a", 0, "1")
		if a := l.append(); a.Head != 1 || len(a.Results) != 0 {
			t.Errorf("empty batch: %+v", a)
		}
		l.put("/registry/a", 1, "2")
	})
}

func TestCancelledAppend(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.open(t)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := l.Append(ctx, []changelog.Change{{Key: "/registry/a", Value: []byte("1")}})
		if !errors.Is(err, context.Canceled) || errors.Is(err, changelog.ErrUnknown) || errors.Is(err, changelog.ErrUnavailable) {
			t.Errorf("append with a cancelled context: %v", err)
		}
		if l.put("/registry/a", 0, "1") != 1 {
			t.Error("the cancelled append was written")
		}
	})
}

// TestConcurrentWriters: a reader that has seen a revision has seen all below. One that
// follows two writing replicas must read every revision, without a gap, at first sight.
func TestConcurrentWriters(t *testing.T) {
	forEachShared(t, func(t *testing.T, db database) {
		const batches = 150
		reader := db.open(t)
		var writers sync.WaitGroup
		for w := range 2 {
			l := db.open(t)
			writers.Go(func() { writeBatches(t, l, w, batches) })
		}
		ctx, cancel := context.WithCancel(context.Background())
		hints := make(chan struct{}, 1)
		var follower sync.WaitGroup
		follower.Go(func() {
			reader.Follow(ctx, changelog.Follower{Hint: func(int64) {
				select {
				case hints <- struct{}{}:
				default:
				}
			}})
		})
		seen := int64(0)
		within(t, "all rows", func(ctx context.Context) error {
			for seen < 2*batches*3 {
				rows, err := reader.Rows(ctx, seen, 100)
				if err != nil {
					return err
				}
				for _, r := range rows {
					if seen++; r.Revision != seen {
						return fmt.Errorf("revision %d appeared where %d belongs", r.Revision, seen)
					}
				}
				if len(rows) > 0 {
					continue
				}
				select {
				case <-hints:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
		writers.Wait()
		cancel()
		follower.Wait()
	})
}

func writeBatches(t *testing.T, l log, writer, batches int) {
	last := make([]int64, 3)
	for range batches {
		var batch []changelog.Change
		for i := range last {
			batch = append(batch, changelog.Change{Key: fmt.Sprintf("/registry/w%d/%d", writer, i), Expect: last[i], Value: []byte("x")})
		}
		a, err := l.Append(context.Background(), batch)
		if err != nil {
			t.Error(err)
			return
		}
		for i, r := range a.Results {
			if last[i] = r.Revision; r.Revision == 0 {
				t.Errorf("writer %d: %+v", writer, r)
				return
			}
		}
	}
}

// TestSameKey lets two replicas fight for one key: each expectation is won once.
func TestSameKey(t *testing.T) {
	forEachShared(t, func(t *testing.T, db database) {
		const rounds = 60
		logs := []log{db.open(t), db.open(t)}
		start := logs[0].put("/registry/key", 0, "0")
		var wg sync.WaitGroup
		won := make([]int, len(logs))
		for w, l := range logs {
			wg.Go(func() {
				for expect := start; won[w] < rounds; {
					a, err := l.Append(context.Background(), []changelog.Change{{Key: "/registry/key", Expect: expect, Value: []byte("x")}})
					if err != nil {
						t.Error(err)
						return
					}
					if r := a.Results[0]; r.Revision != 0 {
						expect = r.Revision
						won[w]++
					} else {
						expect = r.Found
					}
				}
			})
		}
		wg.Wait()
		if head := logs[0].head().Revision; head != 2*rounds+1 {
			t.Errorf("head %d after %v wins", head, won)
		}
	})
}
