package server

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/dialects/logtest"
)

// A server whose authority is not that of the others on a database does not start, unless it is told to take its place;
// one that has a copy of their authority does.
func TestAuthorityShared(t *testing.T) {
	logtest.EachShared(t, func(t *testing.T, d logtest.Dialect) {
		dsn, dir := d.Fresh(t), t.TempDir()
		in := func(name string) Config {
			return Config{DSN: dsn, DataDir: filepath.Join(dir, name), Controllers: []string{}, Log: logTo(t)}
		}
		start(t, in("one"))
		refused := func(name string) {
			t.Helper()
			err := New(in(name)).Open(t.Context())
			if !errors.Is(err, ErrConfig) {
				t.Fatalf("%s starts, or: %v", name, err)
			}
			for _, part := range []string{"have another authority", "copy ca.crt, ca.key and sa.key from their pki/ to " + filepath.Join(dir, name, "pki"), "--new-authority"} {
				if !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%v: lacks %q", err, part)
				}
			}
		}
		refused("other")
		for _, file := range []string{"ca.crt", "ca.key", "sa.key"} {
			text, err := os.ReadFile(filepath.Join(dir, "one", "pki", file))
			must(t, err)
			must(t, os.WriteFile(filepath.Join(dir, "other", "pki", file), text, 0o600))
		}
		start(t, in("other"))
		taking := in("third")
		taking.NewAuthority = true
		start(t, taking)
		refused("one")
	})
}

// Without files, each server has an authority of its own; a SQLite database has one server.
func TestAuthorityOfNobodyElse(t *testing.T) {
	dsn := logtest.Postgres(t)
	for range 2 {
		start(t, Config{DSN: dsn, Controllers: []string{}})
	}
	dir := t.TempDir()
	for _, name := range []string{"one", "other"} {
		s := New(Config{DSN: "sqlite://" + filepath.Join(dir, "plinth.db"), DataDir: filepath.Join(dir, name), Controllers: []string{}})
		must(t, s.Open(t.Context()))
		must(t, s.Close())
	}
}
