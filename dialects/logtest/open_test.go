package logtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestMustExist opens what is not there. Nothing is made, and a log that is there opens.
func TestMustExist(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		must := dialects.Options{MustExist: true}
		for range 2 {
			l, err := dialects.Open(t.Context(), db.dsn, must)
			if err == nil {
				l.Close()
				t.Fatal("opened what is not there")
			}
			if !errors.Is(err, changelog.ErrNoLog) || !errors.Is(err, dialects.ErrDSN) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("open: %v", err)
			}
		}
		if db.name == "memory" {
			return
		}
		if l := openDSN(t, db.dsn); !l.Made() {
			t.Error("the first Open has not made the log")
		} else {
			l.Close()
		}
		l, err := dialects.Open(t.Context(), db.dsn, must)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if l.Made() {
			t.Error("the second Open has made the log")
		}
	})
}

// TestMustExistFiles knows by their names what a refusal has made: nothing.
func TestMustExistFiles(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.db")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "nope.db"), filepath.Join(dir, "no", "such", "dir.db"), empty} {
		_, err := dialects.Open(t.Context(), "sqlite://"+path, dialects.Options{MustExist: true})
		if !errors.Is(err, changelog.ErrNoLog) || !strings.Contains(err.Error(), path) {
			t.Errorf("open %s: %v", path, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "empty.db" {
		t.Errorf("the directory has %v, %v", entries, err)
	}
	if info, err := os.Stat(empty); err != nil || info.Size() != 0 {
		t.Errorf("the empty file has become %v, %v", info, err)
	}
}

// TestPoolerModes: what is used behind a transaction pooler works as well.
func TestPoolerModes(t *testing.T) {
	for _, mode := range []string{"simple_protocol", "exec", "describe_exec", "cache_describe"} {
		t.Run(mode, func(t *testing.T) {
			db := database{"postgres", Postgres(t)}
			sep := "?"
			if strings.Contains(db.dsn, "?") {
				sep = "&"
			}
			db.dsn += sep + "default_query_exec_mode=" + mode
			l := db.open(t)
			history(l)
			l.append(changelog.Change{Key: "/registry/x", Value: []byte{0, 255, '\'', '\\'}}, changelog.Change{Key: "/registry/y'\"{},\\", Value: []byte("y")})
			l.compact(5, 10)
			if rows := l.state(first, end, 9); len(rows) != 4 || len(rows[2].Value) != 4 {
				t.Errorf("state %+v", rows)
			}
			l.steps(first, end, 5, 9)
		})
		t.Run(mode+" with raw keys", func(t *testing.T) {
			db := database{"postgres", Postgres(t)}
			sep := "?"
			if strings.Contains(db.dsn, "?") {
				sep = "&"
			}
			db.dsn += sep + "default_query_exec_mode=" + mode
			l := db.openRaw(t)
			l.write(put("a'\\", "1"), put("\x00\x01\xff", "\x00"))
			l.grant(hour, 1, 2)
			l.write(put("a'\\", "2"))
			if renewed, err := l.Renew(t.Context(), []int64{1, 3}); err != nil || len(renewed) != 1 {
				t.Errorf("renewed %v, %v", renewed, err)
			}
			if _, err := l.Beat(t.Context(), 0); err != nil {
				t.Error(err)
			}
			if _, _, err := l.Expired(t.Context(), 1); err != nil {
				t.Error(err)
			}
			if values, err := l.Values(t.Context(), []int64{changelog.FirstID(2)}); err != nil || len(values) != 1 {
				t.Errorf("values %v, %v", values, err)
			}
			if steps := l.steps("", changelog.End, 0, changelog.LastID(2)); len(steps) != 3 || steps[2].Prev == nil {
				t.Errorf("steps %+v", steps)
			}
			if keys, err := l.Keys(t.Context(), "", changelog.End, changelog.LastID(2), 5); err != nil || len(keys) != 2 {
				t.Errorf("keys %+v, %v", keys, err)
			}
			l.do(changelog.Decision{Revoke: []int64{1}})
			if _, err := l.Cut(t.Context(), changelog.LastID(2)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestReopen(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		if db.name == "memory" {
			db.dsn = SQLite(t) // memory has nothing to reopen
		}
		l := openDSN(t, db.dsn)
		id := l.ClusterID()
		log{l, t}.put("/registry/a", 0, "1")
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Append(context.Background(), []changelog.Change{{Key: "/b"}}); !errors.Is(err, changelog.ErrClosed) {
			t.Errorf("append after close: %v", err)
		}
		again := db.open(t)
		if len(id) != 36 || again.ClusterID() != id {
			t.Errorf("cluster id %q, then %q", id, again.ClusterID())
		}
		again.put("/registry/a", 1, "2")
	})
}

func TestClusterIDsDiffer(t *testing.T) {
	var ids sync.Map
	forEach(t, func(t *testing.T, db database) {
		id := db.open(t).ClusterID()
		if _, known := ids.LoadOrStore(id, true); known || len(id) != 36 {
			t.Errorf("cluster id %q", id)
		}
	})
}

// TestMigrationEndsItsConnection counts the goroutines of MySQL's driver, which has one for each
// open connection: when the log is closed, that of the migrations has ended, too.
func TestMigrationEndsItsConnection(t *testing.T) {
	before := driverGoroutines(t)
	openDSN(t, MariaDB(t)).Close()
	for deadline := time.Now().Add(time.Minute); driverGoroutines(t) > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections, %d before", driverGoroutines(t), before)
		}
	}
}

func driverGoroutines(t *testing.T) int {
	var stacks strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&stacks, 2); err != nil {
		t.Fatal(err)
	}
	return strings.Count(stacks.String(), "startWatcher.func1(")
}
