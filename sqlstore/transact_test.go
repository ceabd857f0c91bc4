package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest"
	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

func openRawLog(t testing.TB, dsn string) changelog.Log {
	t.Helper()
	log, err := dialects.Open(t.Context(), dsn, dialects.Options{Kind: changelog.KindEtcd, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// openRaw opens a Store of raw keys, and checks at the end that a Store which reads the database
// anew agrees with it.
func openRaw(t testing.TB, dsn string, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), openRawLog(t, dsn), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// do commits a transaction that must succeed.
func do(t testing.TB, s *Store, run func(tx *Tx) error, leases ...int64) Outcome {
	t.Helper()
	o, err := s.Keys().Do(context.Background(), Transaction{Leases: leases, Run: run})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func putRaw(t testing.TB, s *Store, pairs ...string) int64 {
	t.Helper()
	return do(t, s, func(tx *Tx) error {
		for i := 0; i < len(pairs); i += 2 {
			tx.Put(pairs[i], []byte(pairs[i+1]), 0)
		}
		return nil
	}).Revision
}

// rawState returns what a view has, as key=value@revision/create/version.
func rawState(t testing.TB, s *Store, v View) string {
	t.Helper()
	var entries []*Entry
	err := v.Scan(context.Background(), "", changelog.End, func(e *Entry) bool { entries = append(entries, e); return true })
	if err != nil {
		t.Fatal(err)
	}
	values, err := s.Keys().Values(context.Background(), entries)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for i, e := range entries {
		revision, _ := changelog.Split(e.Revision)
		created, _ := changelog.Split(e.CreateRevision)
		fmt.Fprintf(&out, "%q=%s@%d/%d/%d ", e.Key, values[i], revision, created, e.Version())
	}
	return out.String()
}

// TestDo wants one revision for all that a transaction writes.
func TestDo(t *testing.T) {
	s := openRaw(t, "sqlite://:memory:", Options{})
	if o, err := s.Keys().Read(t.Context(), func(tx *Tx) error { return nil }); err != nil || o.Revision != 1 {
		t.Fatalf("the empty state has revision %d, %v", o.Revision, err)
	}
	if r := putRaw(t, s, "a", "1", "b", "2", "\x00\xff", ""); r != 2 {
		t.Errorf("first revision %d", r)
	}
	o := do(t, s, func(tx *Tx) error {
		tx.Put("a", []byte("3"), 0)
		tx.Delete("b")
		tx.Delete("none")
		if tx.Get("b") != nil || tx.Get("a").Version() != 2 || tx.Count("", changelog.End) != 2 {
			t.Error("a transaction does not see what it has written")
		}
		return nil
	})
	if o.Revision != 3 || !o.Wrote {
		t.Errorf("%+v", o)
	}
	if got, want := rawState(t, s, s.Current("")), `"\x00\xff"=@2/2/1 "a"=3@3/2/2 `; got != want {
		t.Errorf("state %s, want %s", got, want)
	}
	before, err := s.At(t.Context(), "", changelog.LastID(2))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := rawState(t, s, before), `"\x00\xff"=@2/2/1 "a"=1@2/2/1 "b"=2@2/2/1 `; got != want {
		t.Errorf("state before %s, want %s", got, want)
	}
	if o := do(t, s, func(tx *Tx) error { tx.Delete("none"); return nil }); o.Wrote || o.Revision != 3 {
		t.Errorf("a transaction without effect: %+v", o)
	}
}

// TestDoFails wants a transaction that fails to leave nothing, and its neighbours alone.
func TestDoFails(t *testing.T) {
	s := openRaw(t, "sqlite://:memory:", Options{})
	refused := errors.New("refused")
	var writers errgroup.Group
	for i := range 100 {
		writers.Go(func() error {
			key := "k" + strconv.Itoa(i%7)
			_, err := s.Keys().Do(context.Background(), Transaction{Leases: []int64{5}, Run: func(tx *Tx) error {
				tx.Put(key, []byte("x"), 0)
				tx.Put("bad", []byte("x"), 0)
				if i%2 == 0 {
					tx.Grant(5, 10)
					tx.Delete(key)
					return refused
				}
				tx.Delete("bad")
				return nil
			}})
			if (i%2 == 0) != errors.Is(err, refused) {
				return fmt.Errorf("transaction %d: %w", i, err)
			}
			return nil
		})
	}
	if err := writers.Wait(); err != nil {
		t.Fatal(err)
	}
	o, err := s.Keys().Read(t.Context(), func(tx *Tx) error {
		if tx.Get("bad") != nil {
			t.Error("a refused transaction has left a key")
		}
		return nil
	})
	if err != nil || o.Revision != 51 {
		t.Errorf("revision %d after 50 transactions, %v", o.Revision, err)
	}
	if leases, _, err := s.Keys().Leases(t.Context(), nil); err != nil || len(leases) != 0 {
		t.Errorf("a refused transaction has left leases: %v, %v", leases, err)
	}
}

// TestDoKind wants each kind of Store to refuse the other's writes.
func TestDoKind(t *testing.T) {
	raw, objects := openRaw(t, "sqlite://:memory:", Options{}), newStore(t, Options{})
	if _, err := raw.Commit(t.Context(), Change{Key: pods + "a", Value: value(pods+"a", 1)}); !errors.Is(err, changelog.ErrKind) {
		t.Errorf("a change of raw keys: %v", err)
	}
	if _, err := objects.Keys().Do(t.Context(), Transaction{Run: increment}); !errors.Is(err, changelog.ErrKind) {
		t.Errorf("a transaction of objects: %v", err)
	}
}

// TestCounter wants transactions of several Stores to see each other's effects.
func TestCounter(t *testing.T) {
	for name, dsn := range map[string]string{"sqlite": "", "postgres": logtest.Postgres(t), "mariadb": logtest.MariaDB(t)} {
		t.Run(name, func(t *testing.T) {
			stores := []*Store{}
			if dsn == "" {
				stores = append(stores, openRaw(t, fileDSN(t), Options{}))
			} else {
				for range 3 {
					stores = append(stores, openRaw(t, dsn, Options{CacheBytes: 1}))
				}
			}
			const each = 60
			var revisions [3*4*each + 2]atomic.Int32
			var writers errgroup.Group
			for _, s := range stores {
				for range 4 {
					writers.Go(func() error {
						for range each {
							o, err := s.Keys().Do(context.Background(), Transaction{Run: increment})
							if err != nil {
								return err
							}
							revisions[o.Revision].Add(1)
						}
						return nil
					})
				}
			}
			if err := writers.Wait(); err != nil {
				t.Fatal(err)
			}
			n := len(stores) * 4 * each
			for r := 2; r <= n+1; r++ {
				if c := revisions[r].Load(); c != 1 {
					t.Errorf("revision %d was given %d times", r, c)
				}
			}
			for _, s := range stores {
				if _, err := s.Sync(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got, want := rawState(t, s, s.Current("")), fmt.Sprintf(`"n"=%d@%d/2/%d `, n, n+1, n); got != want {
					t.Errorf("state %s, want %s", got, want)
				}
			}
		})
	}
}

func increment(tx *Tx) error {
	n := 0
	if e := tx.Get("n"); e != nil {
		value, _ := tx.Value(e)
		n, _ = strconv.Atoi(string(value))
	}
	tx.Put("n", []byte(strconv.Itoa(n+1)), 0)
	return nil
}

// TestLeaseKeys wants a lease's end to take the keys that are attached at that moment.
func TestLeaseKeys(t *testing.T) {
	dsn := fileDSN(t)
	s := openRaw(t, dsn, Options{})
	do(t, s, func(tx *Tx) error {
		tx.Grant(1, 100)
		tx.Grant(2, 100)
		tx.Put("a", nil, 1)
		tx.Put("b", nil, 1)
		tx.Put("c", nil, 1)
		tx.Put("d", nil, 2)
		return nil
	}, 1, 2)
	putRaw(t, s, "b", "detached")
	if keys := s.Keys().Attached(1); fmt.Sprint(keys) != "[a c]" {
		t.Errorf("attached: %v", keys)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openRaw(t, dsn, Options{})
	if keys := s.Keys().Attached(1); fmt.Sprint(keys) != "[a c]" {
		t.Errorf("attached after a restart: %v", keys)
	}
	o := do(t, s, func(tx *Tx) error {
		if lease, ok := tx.Lease(1); !ok || lease.TTL != 100 || lease.Expires <= tx.Now() {
			t.Errorf("lease %+v %v at %d", lease, ok, tx.Now())
		}
		tx.Put("e", nil, 1)
		if n := tx.Revoke(1); n != 3 {
			t.Errorf("%d keys", n)
		}
		return nil
	}, 1)
	if got, want := rawState(t, s, s.Current("")), `"b"=detached@3/2/2 "d"=@2/2/1 `; got != want || o.Revision != 4 {
		t.Errorf("state %s, want %s, at %d", got, want, o.Revision)
	}
	if leases, _, err := s.Keys().Leases(t.Context(), nil); err != nil || len(leases) != 1 || leases[0].ID != 2 {
		t.Errorf("leases %v, %v", leases, err)
	}
}

// TestFirstTransactions wants Stores that begin empty to share nothing that a transaction changes. The
// race detector sees it otherwise.
func TestFirstTransactions(t *testing.T) {
	stores := make([]*Store, 16)
	for i := range stores {
		stores[i] = openRaw(t, "sqlite://:memory:", Options{})
	}
	var g errgroup.Group
	for _, s := range stores {
		g.Go(func() error {
			_, err := s.Keys().Do(context.Background(), Transaction{Run: func(tx *Tx) error {
				tx.Put("a", nil, 0)
				return nil
			}})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, s := range stores {
		if o := do(t, s, func(*Tx) error { return nil }); o.Revision != 2 {
			t.Errorf("store %d is at revision %d after one transaction", i, o.Revision)
		}
	}
}

// lateLog is a log whose transactions, once it is armed, have been committed for a while when they return.
type lateLog struct {
	changelog.Log
	armed           atomic.Bool
	committed, goOn chan struct{}
	asked           chan struct{} // has a token when the head was asked for
}

func (l *lateLog) Transact(ctx context.Context, ask changelog.Ask, decide func(*changelog.Found) (changelog.Decision, error)) error {
	err := l.Log.Transact(ctx, ask, decide)
	if l.armed.CompareAndSwap(true, false) {
		close(l.committed)
		<-l.goOn
	}
	return err
}

func (l *lateLog) Head(ctx context.Context) (changelog.Head, error) {
	head, err := l.Log.Head(ctx)
	select {
	case l.asked <- struct{}{}:
	default:
	}
	return head, err
}

// TestEndOfLease asks for a lease whose end is in the database, and not in memory yet: who is told that it is gone sees that its
// keys are.
func TestEndOfLease(t *testing.T) {
	for name, ask := range map[string]func(*Keys) (int, error){
		"one":     func(k *Keys) (int, error) { all, _, err := k.Leases(t.Context(), []int64{5}); return len(all), err },
		"all":     func(k *Keys) (int, error) { all, _, err := k.Leases(t.Context(), nil); return len(all), err },
		"renewal": func(k *Keys) (int, error) { all, err := k.Renew(t.Context(), []int64{5}); return len(all), err },
	} {
		t.Run(name, func(t *testing.T) {
			log := &lateLog{Log: openRawLog(t, fileDSN(t)), committed: make(chan struct{}), goOn: make(chan struct{}), asked: make(chan struct{}, 1)}
			s, err := Open(t.Context(), log, Options{})
			if err != nil {
				t.Fatal(err)
			}
			do(t, s, func(tx *Tx) error {
				tx.Grant(5, 10)
				tx.Put("a", []byte("x"), 5)
				return nil
			}, 5)
			log.armed.Store(true)
			var revoking errgroup.Group
			revoking.Go(func() error {
				_, err := s.Keys().Do(context.Background(), Transaction{Leases: []int64{5}, Run: func(tx *Tx) error { tx.Revoke(5); return nil }})
				return err
			})
			<-log.committed
			for len(log.asked) > 0 {
				<-log.asked
			}
			told := make(chan string, 1)
			go func() {
				n, err := ask(s.Keys())
				told <- fmt.Sprint(n, err, rawState(t, s, s.Current("")))
			}()
			got := ""
			select {
			case got = <-told:
				close(log.goOn)
			case <-log.asked:
				close(log.goOn)
				got = <-told
			}
			if want := fmt.Sprint(0, nil, ""); got != want {
				t.Errorf("told %s, want %s", got, want)
			}
			if err := revoking.Wait(); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
