package main

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
)

// loadKine plays what kine v0.17.5 has stored.
func loadKine(t *testing.T, d logtest.Dialect, dsn string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "dialects", "kine", "testdata", d.Name+".sql"))
	must(t, err)
	switch d.Name {
	case "sqlite":
		db, err := sql.Open("sqlite3", strings.TrimPrefix(dsn, "sqlite://"))
		must(t, err)
		defer db.Close()
		_, err = db.Exec(string(text))
		must(t, err)
	case "postgres":
		conn, err := pgx.Connect(t.Context(), dsn)
		must(t, err)
		defer conn.Close(context.Background())
		_, err = conn.PgConn().Exec(t.Context(), string(text)).ReadAll()
		must(t, err)
	case "mariadb":
		db, err := dbserver.OpenMySQL(dsn)
		must(t, err)
		defer db.Close()
		for _, statement := range strings.Split(strings.TrimSpace(string(text)), ";\n") {
			_, err := db.Exec(strings.TrimSuffix(statement, ";"))
			must(t, err)
		}
	}
}

// imported is what clients see of a key.
type imported struct {
	Key, Value                  string
	Create, Mod, Version, Lease int64
}

// TestEtcdImport takes kine's keys on each dialect, and has clients read the present, the past and
// the changes. plinth etcd does not serve kine's database before.
func TestEtcdImport(t *testing.T) {
	t.Parallel()
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		ctx, from, dir := withPatience(t), d.Fresh(t), t.TempDir()
		loadKine(t, d, from)
		to := from // beside kine's table
		if d.Name == "sqlite" {
			to = d.Fresh(t)
		}
		code, out := runPlinth(t, "etcd", "--listen-client-urls=http://127.0.0.1:0", "--dsn="+from)
		if code != 2 || !strings.Contains(complaint(out), "has the keys of kine, which were not imported") {
			t.Errorf("plinth etcd on kine's database: exit code %d: %s", code, out)
		}
		if code, out := runPlinth(t, "etcd", "import", "--from-kine="+from, "--dsn="+to); code != 0 {
			t.Fatalf("import: exit code %d: %s", code, out)
		}
		code, out = runPlinth(t, "etcd", "import", "--from-kine="+from, "--dsn="+to)
		if code != 1 || !strings.Contains(out, "holds keys already; write the DSN of an empty database") {
			t.Errorf("a second import: exit code %d: %s", code, out)
		}
		r := []int64{2, 3, 4, 8, 9, 10, 11, 12, 13, 14, 15} // revisions of kine
		if d.Name == "mariadb" {
			r = []int64{10, 17, 24, 52, 59, 66, 73, 80, 87, 94, 101}
		}
		c := startEtcd(t, dir, "--dsn="+to).client(nil)
		got, err := c.Get(ctx, "/registry/", clientv3.WithPrefix())
		must(t, err)
		want := []imported{
			{"/registry/a", "four", r[1], r[4], 3, 0},
			{"/registry/b", "", r[2], r[9], 2, 0},
			{"/registry/c", "c2", r[8], r[8], 1, 0},
			{"/registry/event", "soon", r[5], r[5], 1, 3600},
			{"/registry/health", `{"health":"true"}`, r[0], r[0], 1, 0},
			{"/registry/last", "last", r[10], r[10], 1, 0},
		}
		if diff := cmp.Diff(want, seen(got)); diff != "" || got.Header.Revision != r[10] {
			t.Errorf("revision %d: %s", got.Header.Revision, diff)
		}
		got, err = c.Get(ctx, "/registry/b", clientv3.WithRev(r[3]))
		must(t, err)
		if diff := cmp.Diff([]imported{{"/registry/b", "b\x00\xff", r[2], r[2], 1, 0}}, seen(got)); diff != "" {
			t.Errorf("the past: %s", diff)
		}
		if _, err := c.Get(ctx, "/registry/b", clientv3.WithRev(r[3]-1)); err == nil || !strings.Contains(err.Error(), "compacted") {
			t.Errorf("below what kine has compacted: %v", err)
		}
		testImportedChanges(t, c, r)
		lease, err := c.TimeToLive(ctx, 3600, clientv3.WithAttachedKeys())
		must(t, err)
		if lease.GrantedTTL != 3600 || lease.TTL < 3000 || len(lease.Keys) != 1 {
			t.Errorf("the lease is %+v", lease)
		}
		put, err := c.Put(ctx, "/registry/new", "1")
		must(t, err)
		if put.Header.Revision != r[10]+1 {
			t.Errorf("the next revision is %d", put.Header.Revision)
		}
	})
}

func seen(got *clientv3.GetResponse) (all []imported) {
	for _, kv := range got.Kvs {
		all = append(all, imported{string(kv.Key), string(kv.Value), kv.CreateRevision, kv.ModRevision, kv.Version, kv.Lease})
	}
	return all
}

// testImportedChanges resumes a watch from before the import.
func testImportedChanges(t *testing.T, c *clientv3.Client, r []int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(withPatience(t))
	defer cancel()
	var got []int64
	deletes := 0
	for answer := range c.Watch(ctx, "/registry/", clientv3.WithPrefix(), clientv3.WithRev(r[4]), clientv3.WithPrevKV()) {
		must(t, answer.Err())
		for _, e := range answer.Events {
			got = append(got, e.Kv.ModRevision)
			if e.Type == clientv3.EventTypeDelete && string(e.PrevKv.Value) == "c1" {
				deletes++
			}
		}
		if len(got) >= len(r)-4 {
			break
		}
	}
	if diff := cmp.Diff(r[4:], got); diff != "" || deletes != 1 {
		t.Errorf("changes, with %d deletes: %s", deletes, diff)
	}
}

// TestEtcdImportBad has sources that are not kine's.
func TestEtcdImportBad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, openedLog(t, "sqlite://"+filepath.Join(dir, "plinth.db")).Close())
	for args, want := range map[string]string{
		"--from-kine=sqlite://" + dir + "/no.db --dsn=sqlite://" + dir + "/to.db":         "no such file",
		"--from-kine=sqlite://" + dir + "/plinth.db --dsn=sqlite://" + dir + "/to.db":     "there is no table kine in sqlite://",
		"--from-kine=postgres://u:hunter2@127.0.0.1:1/d --dsn=sqlite://" + dir + "/to.db": "--from-kine: postgres://u@127.0.0.1:1/d: ",
	} {
		code, out := runPlinth(t, append([]string{"etcd", "import"}, strings.Fields(args)...)...)
		if code == 0 || !strings.Contains(out, want) || strings.Contains(out, "hunter2") || strings.Count(complaint(out), "\n") != 1 {
			t.Errorf("%s: exit code %d: %s; want %s", args, code, out, want)
		}
		if _, err := os.Stat(filepath.Join(dir, "to.db")); err == nil {
			t.Errorf("%s: the target was made", args)
		}
	}
}
