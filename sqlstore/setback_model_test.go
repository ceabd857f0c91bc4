package sqlstore_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestSetBackModel restarts, kills and sets back a database again and again under two replicas that write
// all the time. In the end each write that was acknowledged is in the database, or was named as lost by
// the replica that had acknowledged it, and never both; and revisions never went back.
func TestSetBackModel(t *testing.T) { eachServer(t, testSetBackModel) }

func testSetBackModel(t *testing.T, server *dbserver.Server) {
	dsn := logtest.CreateDatabase(t, server)
	all := []*serving{openServing(t, dsn, Options{}), openServing(t, dsn, Options{})}
	lost := []map[int64]string{{}, {}}
	backs := 0
	for round := range 6 {
		ctx, stop := context.WithCancel(t.Context())
		var writers sync.WaitGroup
		for i, s := range all {
			for w := range 3 {
				writers.Go(func() { writeUntil(ctx, s, i*3+w) })
			}
		}
		writes := func() {
			for _, s := range all {
				until(t, "writes are acknowledged", acknowledged(s, 10))
			}
		}
		writes()
		if set := rand.IntN(4) > 0 || round == 0; set {
			save(t, server)
			writes()
			before := []*SetBack{all[0].LastSetBack(), all[1].LastSetBack()}
			setBack(t, server)
			for i, s := range all {
				until(t, "it is noticed", func() bool { return s.LastSetBack() != before[i] })
				for r, key := range lostOf(s.LastSetBack()) {
					lost[i][r] = key
				}
			}
			backs++
		} else {
			server.Kill()
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
		}
		writes()
		stop()
		writers.Wait()
		for i, s := range all {
			until(t, "replicas can be used", func() bool { _, err := s.Sync(t.Context()); return err == nil && s.Healthy() == nil })
			if s.Stats().SetBacks != int64(backs) {
				t.Fatalf("replica %d counts %d set-backs of %d", i, s.Stats().SetBacks, backs)
			}
		}
	}
	there := map[int64]string{}
	rows, err := allRows(t.Context(), openLogFor(t, dsn))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		there[r.Revision] = r.Key
	}
	for i, s := range all {
		gone := 0
		for r, key := range s.acked {
			isThere, isLost := there[r] == key, lost[i][r] == key
			if isThere == isLost {
				t.Errorf("replica %d: %s at %d, acknowledged: there %v, lost %v", i, key, r, isThere, isLost)
			}
			if isLost {
				gone++
			}
		}
		t.Logf("replica %d: %d acknowledged, %d of them lost in %d set-backs", i, len(s.acked), gone, backs)
		if gone == 0 {
			t.Errorf("replica %d has lost nothing", i)
		}
	}
}

// openLogFor opens a database once more.
func openLogFor(t *testing.T, dsn string) changelog.Log {
	log := openLog(t, dsn)
	t.Cleanup(func() { log.Close() })
	return log
}

// acknowledged returns a function that says when s has acknowledged n writes more than now.
func acknowledged(s *serving, n int) func() bool {
	count := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.acked)
	}
	begun := count()
	return func() bool { return count() >= begun+n }
}

// writeUntil changes objects of its own, and some that all share, until ctx ends.
func writeUntil(ctx context.Context, s *serving, writer int) {
	last := int64(0)
	for ctx.Err() == nil {
		key := fmt.Sprintf("%sns/%d-%d", maps, writer, rand.IntN(20))
		if rand.IntN(4) == 0 {
			key = fmt.Sprintf("%sns/shared-%d", maps, rand.IntN(5))
		}
		e, err := s.write(key, rand.IntN(5) == 0)
		switch {
		case err == nil && e.Revision <= last:
			s.t.Errorf("%s got revision %d after %d", key, e.Revision, last)
		case err == nil:
			last = e.Revision
		}
		time.Sleep(time.Duration(rand.IntN(4)) * time.Millisecond) // so that neither writes nor refusals take the machine
	}
}

// TestRestartIsNoSetBack restarts and kills a database under two replicas that write and compact.
func TestRestartIsNoSetBack(t *testing.T) {
	eachServer(t, func(t *testing.T, server *dbserver.Server) {
		dsn := logtest.CreateDatabase(t, server)
		o := Options{History: 20 * time.Millisecond, CompactEvery: 10 * time.Millisecond, WindowBytes: 20000, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
		all := []*Store{openStore(t, newFaultyLog(t, dsn), o), openStore(t, newFaultyLog(t, dsn), o)} // which checks it at the end
		ctx, stop := context.WithCancel(t.Context())
		var writers sync.WaitGroup
		var servings []*serving
		for i, s := range all {
			sv := &serving{Store: s, t: t, acked: map[int64]string{}}
			servings = append(servings, sv)
			for w := range 3 {
				writers.Go(func() { writeUntil(ctx, sv, i*3+w) })
			}
		}
		for _, end := range []func(){server.Stop, server.Kill, server.Stop, server.Kill} {
			for _, s := range servings {
				until(t, "writes are acknowledged", acknowledged(s, 20))
			}
			end()
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range servings {
			until(t, "writes are acknowledged", acknowledged(s, 20))
		}
		stop()
		writers.Wait()
	})
}

// TestSetBackOfRawKeys is for stores of raw keys: a lost transaction is named by its keys, and revisions of
// transactions go on above all served.
func TestSetBackOfRawKeys(t *testing.T) {
	eachServer(t, func(t *testing.T, server *dbserver.Server) {
		dsn := logtest.CreateDatabase(t, server)
		all := []*Store{openRaw(t, dsn, Options{}), openRaw(t, dsn, Options{})}
		a := all[0]
		for i := range 5 {
			putRaw(t, a, fmt.Sprint("kept-", i), "1", "both", fmt.Sprint(i))
		}
		if _, err := a.Keys().CutTo(t.Context(), 4, true); err != nil {
			t.Fatal(err)
		}
		save(t, server)
		for _, s := range all {
			until(t, "the server is back", func() bool { _, err := s.Sync(t.Context()); return err == nil && s.Healthy() == nil })
		}
		want := map[string]int64{}
		for i := range 3 {
			key := fmt.Sprint("lost-", i)
			r := putRaw(t, a, key, "2")
			want[key] = r
		}
		served := putRaw(t, a, "both", "2", "kept-0", "2")
		want["both"], want["kept-0"] = served, served
		for _, s := range all {
			if _, err := s.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s.LastSetBack() != nil {
				t.Fatal("a restart counts as a set-back")
			}
		}
		w, err := a.Keys().WatchRange("", changelog.End, a.Revision())
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		setBack(t, server)
		for _, s := range all {
			until(t, "it is noticed", func() bool { return s.LastSetBack() != nil && s.Healthy() == nil })
			got := map[string]int64{}
			for _, l := range s.LastSetBack().Lost {
				got[l.Key] = l.Revision
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("lost: %v, want %v", got, want)
			}
		}
		expectCompacted(t, w, changelog.LastID(served))
		for _, s := range all {
			if r := putRaw(t, s, "after", "1"); r <= served {
				t.Errorf("goes on at %d after %d", r, served)
			}
			if e := s.Get("lost-0"); e != nil {
				t.Errorf("a lost key is there: %+v", e)
			}
			for _, o := range all {
				if _, err := o.Sync(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if x, y := rawState(t, all[0], all[0].Current("")), rawState(t, all[1], all[1].Current("")); x != y {
			t.Errorf("replicas differ:\n%s\n%s", x, y)
		}
	})
}
