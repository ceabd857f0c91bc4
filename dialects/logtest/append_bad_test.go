package logtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestCommitLost cuts the connection before the packet with COMMIT reaches the server.
func TestCommitLost(t *testing.T) {
	forEachShared(t, func(t *testing.T, db database) {
		p, dsn := through(t, db.dsn)
		direct, l := db.open(t), log{openDSN(t, dsn), t}
		defer l.Close()
		l.put("/registry/a", 0, "1")
		p.arm("LOST-VALUE", lose)
		_, err := l.Append(context.Background(), []changelog.Change{{Key: "/registry/b", Value: []byte("LOST-VALUE")}})
		if !errors.Is(err, changelog.ErrUnknown) {
			t.Errorf("append: %v, want ErrUnknown", err)
		}
		p.disarm()
		if got := l.put("/registry/c", 0, "2"); got != 2 {
			t.Errorf("next revision %d, want 2: the lost change is there", got)
		}
		if rows := direct.rows(); len(rows) != 2 {
			t.Errorf("rows %+v", forget(rows))
		}
	})
}

// TestCommitPersisted cuts the connection after COMMIT was done and before its answer.
func TestCommitPersisted(t *testing.T) {
	forEachShared(t, func(t *testing.T, db database) {
		p, dsn := through(t, db.dsn)
		direct, l := db.open(t), log{openDSN(t, dsn), t}
		defer l.Close()
		l.put("/registry/a", 0, "1")
		p.arm("PERSISTED-VALUE", swallow)
		result := make(chan error, 1)
		go func() {
			_, err := l.Append(context.Background(), []changelog.Change{{Key: "/registry/b", Value: []byte("PERSISTED-VALUE")}})
			result <- err
		}()
		within(t, "row to appear", func(ctx context.Context) error { return reach(ctx, direct, 2) })
		p.cut()
		if err := <-result; !errors.Is(err, changelog.ErrUnknown) {
			t.Errorf("append: %v, want ErrUnknown", err)
		}
		if got := l.put("/registry/c", 0, "3"); got != 3 {
			t.Errorf("next revision %d, want 3: the persisted change is not there", got)
		}
	})
}

// TestAppendWhileRestored appends while the rows of log are there again and those of meta are not: nothing is
// written, whatever the connection has found before.
func TestAppendWhileRestored(t *testing.T) {
	forEachShared(t, func(t *testing.T, db database) {
		l := log{openDSN(t, db.dsn), t}
		defer l.Close()
		a := l.put("/registry/a", 0, "1")
		for _, newestGone := range []bool{false, true} {
			last := l.put("/registry/b", l.append(changelog.Change{Key: "/registry/b", Expect: 1 << 40}).Results[0].Found, "1")
			if newestGone {
				db.exec(t, fmt.Sprintf("DELETE FROM log WHERE id = %d", last))
			}
			before := l.rows()
			db.exec(t, "CREATE TABLE aside AS SELECT * FROM meta")
			db.exec(t, "DELETE FROM meta")
			for _, expect := range []int64{0, a, 999} {
				if got, err := l.Append(t.Context(), []changelog.Change{{Key: "/registry/a", Expect: expect, Value: []byte("no")}}); err == nil {
					t.Errorf("expecting %d: %+v", expect, got)
				}
			}
			db.exec(t, "INSERT INTO meta SELECT * FROM aside")
			db.exec(t, "DROP TABLE aside")
			diff(t, "rows", before, l.rows())
		}
	})
}

// TestIdleCut cuts a connection while nothing is under way. What comes next takes another one, and its
// outcome is known.
func TestIdleCut(t *testing.T) {
	forEachShared(t, func(t *testing.T, db database) {
		p, dsn := through(t, db.dsn)
		l := log{openDSN(t, dsn), t}
		defer l.Close()
		at := int64(0)
		for range 2 {
			at = l.put("/registry/a", at, "1")
			p.cut()
			time.Sleep(1100 * time.Millisecond) // pgx looks at connections that were idle for a second
		}
		l.put("/registry/a", at, "1")
	})
}

// TestCutPersisted cuts the connection after the COMMIT of a Cut was done and before its answer. The
// call says what it found, not what it wrote itself, or that its outcome is unknown.
func TestCutPersisted(t *testing.T) {
	forEachShared(t, func(t *testing.T, db database) {
		p, dsn := through(t, db.dsn)
		direct := db.openRaw(t)
		l, err := dialects.Open(t.Context(), dsn, dialects.Options{Kind: changelog.KindEtcd})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		direct.write(put("a", "1"))
		direct.write(put("a", "2"))
		p.arm(map[string]string{"postgres": "commit\x00", "mariadb": "COMMIT"}[db.name], swallow)
		type answer struct {
			found int64
			err   error
		}
		result := make(chan answer, 1)
		go func() {
			found, err := l.Cut(context.Background(), changelog.LastID(1))
			result <- answer{found, err}
		}()
		within(t, "the floor to rise", func(ctx context.Context) error {
			for direct.head().Floor < changelog.LastID(1) && ctx.Err() == nil {
				time.Sleep(10 * time.Millisecond)
			}
			return ctx.Err()
		})
		p.disarm()
		p.cut()
		if a := <-result; a.found != 0 || a.err != nil && !errors.Is(a.err, changelog.ErrUnknown) {
			t.Errorf("found %d, %v", a.found, a.err)
		}
	})
}

// reach waits until the log's head is at least revision.
func reach(ctx context.Context, l changelog.Log, revision int64) error {
	for {
		h, err := l.Head(ctx)
		if err == nil && h.Revision >= revision {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// grow waits until the log answers and then for n further revisions.
func grow(ctx context.Context, l changelog.Log, n int64) error {
	for {
		h, err := l.Head(ctx)
		if err == nil {
			return reach(ctx, l, h.Revision+n)
		}
		if ctx.Err() != nil {
			return err
		}
	}
}

// TestImpatientCaller cancels while COMMIT is on its way: the outcome is known.
func TestImpatientCaller(t *testing.T) {
	forEachShared(t, func(t *testing.T, db database) {
		p, dsn := through(t, db.dsn)
		l := log{openDSN(t, dsn), t}
		defer l.Close()
		ctx, cancel := context.WithCancel(context.Background())
		caught := p.arm("MARKED-VALUE", swallow)
		go func() {
			<-caught
			cancel()
			time.Sleep(50 * time.Millisecond) // Append must not have come back meanwhile
			p.cut()
		}()
		start := time.Now()
		_, err := l.Append(ctx, []changelog.Change{{Key: "/registry/a", Value: []byte("MARKED-VALUE")}})
		if !errors.Is(err, changelog.ErrUnknown) || time.Since(start) < 50*time.Millisecond {
			t.Errorf("append: %v after %v; it ended with its caller, not with its connection", err, time.Since(start))
		}
	})
}

// TestUnreachable says what errors look like when the server is away.
func TestUnreachable(t *testing.T) {
	for name, start := range map[string]func(testing.TB) *dbserver.Server{"postgres": StartPostgres, "mariadb": StartMariaDB} {
		t.Run(name, func(t *testing.T) {
			server := start(t)
			dsn := CreateDatabase(t, server)
			l := log{openDSN(t, dsn), t}
			defer l.Close()
			l.put("/registry/a", 0, "1")
			server.Stop()
			ctx := context.Background()
			_, appendErr := l.Append(ctx, []changelog.Change{{Key: "/registry/b", Value: []byte("2")}})
			_, headErr := l.Head(ctx)
			_, stateErr := l.State(ctx, first, end, 1, 10)
			_, compactErr := l.Compact(ctx, 1, 10, nil)
			for what, err := range map[string]error{
				"append": appendErr, "head": headErr, "state": stateErr, "compact": compactErr, "raise": l.Raise(ctx, 9),
			} {
				if !errors.Is(err, changelog.ErrUnavailable) || errors.Is(err, changelog.ErrUnknown) {
					t.Errorf("%s: %v, want ErrUnavailable", what, err)
				}
			}
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
			within(t, "recovery", func(ctx context.Context) error { return reach(ctx, l, 1) })
			if got := l.put("/registry/b", 0, "2"); got != 2 {
				t.Errorf("revision %d after the server came back", got)
			}
			l.check()
		})
	}
}

// TestRestartUnderLoad stops and kills the server while a writer goes on. What was
// acknowledged must be there, what failed and is not unknown must not.
func TestRestartUnderLoad(t *testing.T) {
	for name, start := range map[string]func(testing.TB) *dbserver.Server{"postgres": StartPostgres, "mariadb": StartMariaDB} {
		t.Run(name, func(t *testing.T) {
			server := start(t)
			l := log{openDSN(t, CreateDatabase(t, server)), t}
			defer l.Close()
			w := &loader{log: l, stop: make(chan struct{}), done: make(chan struct{})}
			go w.run()
			for _, end := range []func(){server.Stop, server.Kill} {
				time.Sleep(300 * time.Millisecond)
				end()
				if err := server.Start(); err != nil {
					t.Fatal(err)
				}
			}
			within(t, "recovery", func(ctx context.Context) error { return grow(ctx, l, 20) })
			close(w.stop)
			<-w.done
			w.compare(t)
			l.check()
		})
	}
}

// loader appends one new key after the other.
type loader struct {
	log        changelog.Log
	end        string // of its keys; empty: it is alone
	stop, done chan struct{}

	acknowledged     map[string]int64 // after done: key to revision
	failed, unknowns []string
	odd              []error // errors that are neither unavailable nor unknown
}

func (w *loader) run() {
	defer close(w.done)
	w.acknowledged = map[string]int64{}
	for i := 0; ; i++ {
		select {
		case <-w.stop:
			return
		default:
		}
		key := keyOf(i) + w.end
		a, err := w.log.Append(context.Background(), []changelog.Change{{Key: key, Value: []byte("x")}})
		switch {
		case err == nil:
			w.acknowledged[key] = a.Results[0].Revision
		case errors.Is(err, changelog.ErrUnknown):
			w.unknowns = append(w.unknowns, key)
		default:
			w.failed = append(w.failed, key)
			if !errors.Is(err, changelog.ErrUnavailable) {
				w.odd = append(w.odd, err)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func (w *loader) compare(t *testing.T) {
	t.Helper()
	t.Logf("%d acknowledged, %d failed, %d unknown", len(w.acknowledged), len(w.failed), len(w.unknowns))
	found := map[string]int64{}
	for _, r := range (log{w.log, t}).rows() {
		found[r.Key] = r.Revision
	}
	for key, revision := range w.acknowledged {
		if found[key] != revision {
			t.Errorf("%s was acknowledged at %d and is at %d", key, revision, found[key])
		}
	}
	for _, key := range w.failed {
		if found[key] != 0 {
			t.Errorf("%s was refused and is at %d", key, found[key])
		}
	}
	for key := range found {
		if strings.HasSuffix(key, w.end) && w.acknowledged[key] == 0 && !slices.Contains(w.unknowns, key) {
			t.Errorf("%s is there out of nothing", key)
		}
	}
	for _, err := range w.odd {
		t.Errorf("an error is neither unavailable nor unknown: %v", err)
	}
}
