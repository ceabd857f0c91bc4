package main

import (
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/bench/way"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
)

// TestDatabaseFaults goes through faults of a database server and of the way to it. Meanwhile plinth
// answers as the documents say, and when a fault is over it goes on by itself.
func TestDatabaseFaults(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) *dbserver.Server{"postgres": logtest.StartPostgres, "mariadb": logtest.StartMariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := newFaultyDatabase(t, start(t))
			p := serveFor(t, t.TempDir()+"/data", db.dsn, "--controllers=none")
			_, err := client(t, p).Create(t.Context(), configMap("before", "1"), metav1.CreateOptions{})
			must(t, err)
			for _, f := range []struct {
				name       string
				begin, end func(t *testing.T)
				reads      bool // that must be the most recent, meanwhile
			}{
				{"read-only", db.readOnly, db.writable, true},
				{"out of connections", db.refuse, db.accept, false},
				{"cut off", db.block, db.unblock, false},
			} {
				t.Logf("fault: %s", f.name)
				f.begin(t)
				if f.reads { // only a write meets it
					request(t, p, "POST", "/api/v1/namespaces/default/configmaps", awayConfigMap)
				}
				expectAway(t, p)
				const path = "/api/v1/namespaces/default/configmaps/before"
				if got := request(t, p, "GET", path, ""); strings.HasPrefix(got, "HTTP 200\n") != f.reads || isRefused(got) == f.reads {
					t.Errorf("a read that must be the most recent: %s", got)
				}
				if got := request(t, p, "GET", path+"?resourceVersion=0", ""); !strings.HasPrefix(got, "HTTP 200\n") {
					t.Errorf("a read from memory: %s", got)
				}
				f.end(t)
				expectBack(t, p)
				must(t, client(t, p).Delete(t.Context(), "back", metav1.DeleteOptions{}))
			}
			for _, delay := range []time.Duration{25, 250} { // each way
				db.way.Slow(delay * time.Millisecond)
				patiently(t, "write slowly", func() error {
					_, err := client(t, p).Create(t.Context(), configMap("slow", "1"), metav1.CreateOptions{})
					return err
				})
				must(t, client(t, p).Delete(t.Context(), "slow", metav1.DeleteOptions{}))
				expectReady(t, p)
			}
			db.way.Slow(0)
		})
	}
}

// faultyDatabase is a database on a server of its own, and the way that plinth takes to it as a user who
// is no administrator.
type faultyDatabase struct {
	server    *dbserver.Server
	direct    string // of the database, with all rights
	dsn       string // of the way
	user      string
	way       *way.Way
	occupants []*sql.Conn // that others have
}

func newFaultyDatabase(t *testing.T, server *dbserver.Server) *faultyDatabase {
	t.Helper()
	d := &faultyDatabase{server: server, direct: logtest.CreateDatabase(t, server)}
	u, err := url.Parse(logtest.WithPassword(t, d.direct, "s3cret"))
	must(t, err)
	d.user = u.User.Username()
	d.way, err = way.New(u.Host)
	must(t, err)
	t.Cleanup(d.way.Close)
	file := filepath.Join(t.TempDir(), "password")
	must(t, os.WriteFile(file, []byte("s3cret"), 0o600))
	q := u.Query()
	q.Set("password_file", file)
	u.Host, u.RawQuery = d.way.Address(), q.Encode()
	d.dsn = u.String()
	return d
}

func (d *faultyDatabase) postgres() bool { return strings.HasPrefix(d.direct, "postgres") }

// exec runs statements as the administrator, one by one.
func (d *faultyDatabase) exec(t *testing.T, postgres, mysql []string) {
	t.Helper()
	statements := mysql
	if d.postgres() {
		statements = postgres
	}
	for _, s := range statements {
		logtest.Exec(t, d.direct, s)
	}
}

// readOnly makes the server one that a fail-over has not reached yet.
func (d *faultyDatabase) readOnly(t *testing.T) {
	if d.postgres() {
		d.server.Stop()
		must(t, d.server.StandBy())
		must(t, d.server.Start())
		return
	}
	logtest.Exec(t, d.direct, `SET GLOBAL read_only = 1`)
}

func (d *faultyDatabase) writable(t *testing.T) {
	d.exec(t, []string{`SELECT pg_promote()`}, []string{`SET GLOBAL read_only = 0`})
}

// refuse leaves plinth no connection, and ends those that it has.
func (d *faultyDatabase) refuse(t *testing.T) {
	if d.postgres() {
		d.exec(t, []string{`ALTER ROLE "` + d.user + `" CONNECTION LIMIT 0`, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '` + d.user + `'`}, nil)
		return
	}
	logtest.Exec(t, d.direct, `SET GLOBAL max_connections = 10`)
	target := d.server.DSN("")
	u, err := url.Parse(target)
	must(t, err)
	d.way.Lead("127.0.0.1:0") // so that plinth does not take what is freed
	d.way.Cut()
	others, err := dbserver.OpenMySQL(target)
	must(t, err)
	t.Cleanup(func() { others.Close() })
	for taken := 0; taken < 10; { // the administrator may have one more
		conn, err := others.Conn(t.Context())
		if err == nil {
			d.occupants, taken = append(d.occupants, conn), taken+1
		}
	}
	d.way.Lead(u.Host)
}

// accept lets plinth in again.
func (d *faultyDatabase) accept(t *testing.T) {
	if d.postgres() {
		d.exec(t, []string{`ALTER ROLE "` + d.user + `" CONNECTION LIMIT -1`}, nil)
	}
	for _, conn := range d.occupants {
		must(t, conn.Close())
	}
	d.occupants = nil
}

func (d *faultyDatabase) block(*testing.T)   { d.way.Block() }
func (d *faultyDatabase) unblock(*testing.T) { d.way.Unblock() }

// TestDatabaseFull fills the disk that a database server keeps the tables on. Postgres refuses writes then,
// and reads go on. MariaDB may end itself. When there is room again, and a server, writes go on.
func TestDatabaseFull(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) *dbserver.Server{"postgres": logtest.StartPostgres, "mariadb": logtest.StartMariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t)
			dsn, grow := smallDatabase(t, server)
			p := serveFor(t, t.TempDir()+"/data", dsn, "--controllers=none")
			body := func(i int) string {
				noise := make([]byte, 400_000) // that databases cannot compress
				_, _ = rand.Read(noise)
				return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"big-%d"},"data":{"n":"1"},"binaryData":{"x":%q}}`, i, base64.StdEncoding.EncodeToString(noise))
			}
			const path = "/api/v1/namespaces/default/configmaps"
			stored := 0
			for ; stored < 200; stored++ {
				if got := request(t, p, "POST", path, body(stored)); !strings.HasPrefix(got, "HTTP 201\n") {
					if !isRefused(got) && name == "postgres" {
						t.Errorf("a write to a full disk: %.300s", got)
					}
					break
				}
			}
			if stored == 0 || stored == 200 {
				t.Fatalf("%d objects were stored", stored)
			}
			query := map[string]string{"postgres": "", "mariadb": "?resourceVersion=0"}[name]
			if got := request(t, p, "GET", path+"/big-0"+query, ""); !strings.HasPrefix(got, "HTTP 200\n") {
				t.Errorf("a read: %.300s", got)
			}
			grow()
			if name == "mariadb" {
				server.Kill()
				must(t, server.Start())
			}
			soon(t, "writes go on", func() bool {
				return strings.HasPrefix(request(t, p, "POST", path, body(1000)), "HTTP 201\n")
			})
			expectReady(t, p)
			list, err := client(t, p).List(t.Context(), metav1.ListOptions{})
			must(t, err)
			names := map[string]bool{}
			for _, c := range list.Items {
				names[c.Name] = true
			}
			for i := range stored {
				if !names[fmt.Sprintf("big-%d", i)] {
					t.Errorf("object %d of %d is gone", i, stored)
				}
			}
		})
	}
}

// smallDatabase makes a database on a file system of its own, which grow enlarges.
func smallDatabase(t *testing.T, server *dbserver.Server) (dsn string, grow func()) {
	t.Helper()
	var dir, owner string
	if admin := server.DSN(""); strings.HasPrefix(admin, "postgres") {
		conn, err := pgx.Connect(t.Context(), admin)
		must(t, err)
		defer conn.Close(t.Context())
		must(t, conn.QueryRow(t.Context(), `SHOW data_directory`).Scan(&owner))
		dir = filepath.Join(filepath.Dir(owner), "small")
		must(t, os.Mkdir(dir, 0o700))
		grow = mountSmall(t, dir, owner)
		logtest.Exec(t, admin, `CREATE TABLESPACE small LOCATION '`+dir+`'`)
		logtest.Exec(t, admin, `CREATE DATABASE small TABLESPACE small`)
	} else {
		db, err := dbserver.OpenMySQL(admin)
		must(t, err)
		defer db.Close()
		must(t, db.QueryRowContext(t.Context(), `SELECT @@datadir`).Scan(&owner))
		logtest.Exec(t, admin, `CREATE DATABASE small`)
		grow = mountSmall(t, filepath.Join(owner, "small"), owner)
	}
	return server.DSN("small"), grow
}

// mountSmall mounts a small file system that belongs to the owner of a file.
func mountSmall(t *testing.T, dir, like string) (grow func()) {
	t.Helper()
	info, err := os.Stat(like)
	must(t, err)
	owner := info.Sys().(*syscall.Stat_t)
	options := fmt.Sprintf("mode=0700,uid=%d,gid=%d,size=", owner.Uid, owner.Gid)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options+"24m"); err != nil {
		t.Skipf("LOUD: a full disk is not tested, because mounting is not permitted here: %v", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	return func() { must(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, options+"200m")) }
}
