package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// eachServer runs test with a server of each product that it may stop.
func eachServer(t *testing.T, test func(t *testing.T, server *dbserver.Server)) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) { t.Parallel(); test(t, logtest.StartPostgres(t)) })
	t.Run("mariadb", func(t *testing.T) { t.Parallel(); test(t, logtest.StartMariaDB(t)) })
}

// serving is a Store whose database may be set back, and what it has acknowledged.
type serving struct {
	*Store
	log *faultyLog
	t   *testing.T

	mu    sync.Mutex
	acked map[int64]string // keys by revision
}

// openServing opens a Store, and checks at the end that it agrees with the log.
func openServing(t *testing.T, dsn string, o Options) *serving {
	t.Helper()
	log := newFaultyLog(t, dsn)
	if o.History == 0 {
		o.History = -1
	}
	s, err := object.Open(t.Context(), log, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		checkInvariants(t, s, log)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &serving{Store: s, log: log, t: t, acked: map[int64]string{}}
}

// write creates, updates or deletes the object of key, whatever is there.
func (s *serving) write(key string, remove bool) (*Entry, error) {
	c := Change{Key: key, Value: value(key, rand.Int())}
	if e := s.Get(key); e != nil {
		c.Expect, c.Delete = e.Revision, remove
	}
	e, err := s.Commit(context.Background(), c)
	if err == nil {
		s.mu.Lock()
		s.acked[e.Revision] = key
		s.mu.Unlock()
	}
	return e, err
}

func (s *serving) mustWrite(key string, remove bool) *Entry {
	s.t.Helper()
	e, err := s.write(key, remove)
	if err != nil {
		s.t.Fatalf("write %s: %v", key, err)
	}
	return e
}

// ackedAfter returns what s has acknowledged after a revision and up to another one.
func (s *serving) ackedAfter(after, through int64) map[int64]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[int64]string{}
	for r, key := range s.acked {
		if after < r && r <= through {
			out[r] = key
		}
	}
	return out
}

func lostOf(b *SetBack) map[int64]string {
	out := map[int64]string{}
	if b != nil {
		for _, w := range b.Lost {
			out[w.Revision] = w.Key
		}
	}
	return out
}

// until waits for something that must happen.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// save keeps what the server has now. Stores that are connected to it must take that for a restart.
func save(t *testing.T, server *dbserver.Server) {
	t.Helper()
	server.Stop()
	if err := errors.Join(server.Save(), server.Start()); err != nil {
		t.Fatal(err)
	}
}

// setBack brings the server back to what was saved.
func setBack(t *testing.T, server *dbserver.Server) {
	t.Helper()
	server.Kill()
	if err := errors.Join(server.Restore(), server.Start()); err != nil {
		t.Fatal(err)
	}
}

// expectCompacted wants a watch to end with ErrCompacted before it delivers anything that is not of
// the old history.
func expectCompacted(t *testing.T, w *Watcher, old int64) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; {
		events, _, err := w.Poll(t.Context())
		for _, ev := range events {
			if ev.Entry.Revision > old+Slack {
				t.Errorf("an old watch has got %s at %d", ev.Entry.Key, ev.Entry.Revision)
			}
		}
		if errors.Is(err, changelog.ErrCompacted) {
			return
		}
		if err != nil && !errors.Is(err, changelog.ErrUnavailable) || time.Now().After(end) {
			t.Fatalf("an old watch goes on: %v", err)
		}
		select {
		case <-w.Wait():
		case <-time.After(time.Millisecond):
		}
	}
}

// TestSetBack sets a database back under one replica, and under two, one of which may know less of what is
// lost, and may have written in its place what the other one does not know.
func TestSetBack(t *testing.T) {
	eachServer(t, func(t *testing.T, server *dbserver.Server) {
		for _, test := range []struct {
			name     string
			replicas int
			lagging  bool // the last replica does not read what is lost
			ahead    bool // and writes more than that in its place, before the first one sees the database
		}{
			{"one", 1, false, false},
			{"two", 2, false, false},
			{"lagging", 2, true, false},
			{"ahead", 2, true, true},
		} {
			t.Run(test.name, func(t *testing.T) { testSetBack(t, server, test.replicas, test.lagging, test.ahead) })
		}
	})
}

func testSetBack(t *testing.T, server *dbserver.Server, replicas int, lagging, ahead bool) {
	ctx := t.Context()
	dsn := logtest.CreateDatabase(t, server)
	var all []*serving
	for range replicas {
		all = append(all, openServing(t, dsn, Options{QueryTimeout: time.Minute, AppendTimeout: time.Minute}))
	}
	a, last := all[0], all[replicas-1]
	for i := range 20 {
		a.mustWrite(fmt.Sprintf("%sns/kept-%d", maps, i), false)
	}
	save(t, server)
	for _, s := range all {
		until(t, "the server is back", func() bool { _, err := s.Sync(ctx); return err == nil && s.Healthy() == nil })
		if s.LastSetBack() != nil {
			t.Fatal("a restart counts as a set-back")
		}
	}
	if ahead {
		last.log.cutOff()
	}
	kept := a.mustWrite(maps+"ns/kept-0", false) // lost
	if lagging && !ahead {
		if _, err := last.Sync(ctx); err != nil {
			t.Fatal(err)
		}
		last.log.cutOff()
	}
	for i := range 30 {
		a.mustWrite(fmt.Sprintf("%sns/lost-%d", maps, i%15), i > 20)
	}
	a.mustWrite(maps+"ns/kept-3", true)
	stale := a.mustWrite(maps+"ns/kept-4", false)
	served := a.Revision()
	for _, s := range all {
		if !lagging || s != last {
			if _, err := s.Sync(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	var watchers []*Watcher
	for _, s := range all {
		for _, after := range []int64{1, s.Revision()} {
			w, err := s.Watch(maps, maps, after)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			watchers = append(watchers, w)
		}
	}
	if ahead {
		a.log.cutOff()
	}
	setBack(t, server)
	if ahead {
		last.log.away.Store(false)
		for i := 0; last.Revision() < served+10; i++ {
			_, _ = last.write(fmt.Sprintf("%sns/ahead-%d", maps, i%7), false) // which fails as long as it is away
		}
		a.log.away.Store(false)
	} else if lagging {
		last.log.away.Store(false)
	}
	for _, s := range all {
		mine := !ahead || s != last // what is lost is known to the replica
		until(t, "it is noticed", func() bool { return (s.LastSetBack() != nil || !mine) && s.Floor() > served && s.Healthy() == nil })
		want := all[0].ackedAfter(kept.Revision-1, served)
		if lagging && s == last {
			want = map[int64]string{kept.Revision: kept.Key}
			if ahead {
				want = nil // it has served nothing of what is lost
			}
		}
		if diff := cmp.Diff(want, lostOf(s.LastSetBack()), cmpEmpty); diff != "" {
			t.Errorf("lost, as expected and as told:\n%s", diff)
		}
		if s.Revision() <= served || s.Floor() <= served {
			t.Errorf("goes on at %d above %d, having served %d", s.Revision(), s.Floor(), served)
		}
		if _, err := s.Watch(maps, maps, served); !errors.Is(err, changelog.ErrCompacted) {
			t.Errorf("a watch that begins before: %v", err)
		}
		if _, err := s.At(ctx, maps, served); !errors.Is(err, changelog.ErrCompacted) {
			t.Errorf("a list of before: %v", err)
		}
		if v := s.Stats(); v.SetBacks != map[bool]int64{true: 1}[mine] || int(v.LostWrites) != len(want) {
			t.Errorf("counted %d, %d", v.SetBacks, v.LostWrites)
		}
	}
	if ahead {
		for r, key := range last.ackedAfter(0, served+Slack) {
			if e := a.Get(key); e == nil || e.Revision < r {
				t.Errorf("%s at %d, written after it, is gone", key, r)
			}
		}
	}
	for _, w := range watchers {
		expectCompacted(t, w, served)
	}
	_, err := a.Commit(ctx, Change{Key: stale.Key, Expect: stale.Revision, Value: value(stale.Key, 1)})
	var conflict *ConflictError
	if !errors.As(err, &conflict) {
		t.Errorf("a change of a lost version: %v", err)
	}
	for _, s := range all {
		e := s.mustWrite(maps+"ns/after", false)
		if e.Revision <= served {
			t.Errorf("a write after it has revision %d", e.Revision)
		}
		for _, o := range all {
			if _, err := o.Sync(ctx); err != nil || o.Get(e.Key) == nil || o.Get(e.Key).Revision != e.Revision {
				t.Errorf("a write after it is not seen: %v", err)
			}
		}
	}
}

// cmpEmpty takes nil for empty.
var cmpEmpty = cmp.Transformer("sorted", func(m map[int64]string) []string {
	out := []string{}
	for r, key := range m {
		out = append(out, fmt.Sprintf("%09d %s", r, key))
	}
	slices.Sort(out)
	return out
})

// TestSetBackNamed names each key once, those that are written all the time last.
func TestSetBackNamed(t *testing.T) {
	b := &SetBack{Lost: []LostWrite{
		{Key: "/lease", Revision: 1}, {Key: "/a", Revision: 2}, {Key: "/lease", Revision: 3}, {Key: "/b", Revision: 4, Deleted: true}, {Key: "/lease", Revision: 5},
	}}
	for n, want := range map[int]string{
		1: "/a at 2, and 2 more",
		3: "/a at 2, /b at 4 (deleted), /lease at 5",
	} {
		if got := b.Named(n); got != want {
			t.Errorf("the first %d: %s, want %s", n, got, want)
		}
	}
}

// TestOtherCluster has the database of another cluster restored under a Store, and then the right one, in which a write
// is missing.
func TestOtherCluster(t *testing.T) {
	for _, d := range logtest.Dialects {
		if d.Servers == 1 {
			continue // nobody exchanges the file of a process
		}
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			ctx, dsn := t.Context(), d.Fresh(t)
			s := openServing(t, dsn, Options{})
			s.mustWrite(maps+"ns/kept", false)
			lost := s.mustWrite(maps+"ns/lost", false)
			logtest.Exec(t, dsn, "UPDATE meta SET value = 'another' WHERE name = 'cluster_id'")
			logtest.Exec(t, dsn, fmt.Sprintf("DELETE FROM log WHERE id = %d", lost.Revision))
			until(t, "the other database is noticed", func() bool { _, _ = s.Sync(ctx); return errors.Is(s.Healthy(), changelog.ErrOther) })
			for range 3 {
				if _, err := s.write(maps+"ns/new", false); !errors.Is(err, changelog.ErrUnavailable) {
					t.Errorf("a write to another cluster's database: %v", err)
				}
				if _, err := s.Sync(ctx); !errors.Is(err, changelog.ErrUnavailable) {
					t.Errorf("a read of another cluster's database: %v", err)
				}
				time.Sleep(200 * time.Millisecond)
			}
			if marks, err := s.log.Marks(ctx); err != nil || marks["setback"] != "" || s.LastSetBack() != nil {
				t.Errorf("the database of another cluster was changed: %v, %v", marks, err)
			}
			logtest.Exec(t, dsn, fmt.Sprintf("UPDATE meta SET value = '%s' WHERE name = 'cluster_id'", s.Source().ClusterID()))
			until(t, "the right database is served, and what is lost is told after that", func() bool {
				_, err := s.Sync(ctx)
				return err == nil && s.Healthy() == nil && s.LastSetBack() != nil
			})
			if lostOf(s.LastSetBack())[lost.Revision] != lost.Key {
				t.Errorf("lost is %v", lostOf(s.LastSetBack()))
			}
			s.mustWrite(maps+"ns/new", false)
		})
	}
}
