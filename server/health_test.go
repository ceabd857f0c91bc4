package server

import (
	"context"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
)

// probeRow is what one path of the health endpoints answers. Errors end with a newline.
type probeRow struct {
	name, path string
	code       int
	body       string
}

// https://kubernetes.io/docs/reference/using-api/health-checks/
var wellRows = []probeRow{
	{"livez", "/livez", 200, "ok"},
	{"readyz", "/readyz", 200, "ok"},
	{"healthz, deprecated", "/healthz", 200, "ok"},
	{"verbose prints out the checks and their status", "/readyz?verbose", 200, "[+]ping ok\n[+]storage ok\n[+]bootstrap ok\n[+]shutdown ok\nreadyz check passed\n"},
	{"verbose with any value", "/livez?verbose=false", 200, "[+]ping ok\nlivez check passed\n"},
	{"healthz knows no shutdown", "/healthz?verbose", 200, "[+]ping ok\n[+]storage ok\n[+]bootstrap ok\nhealthz check passed\n"},
	{"exclude leaves a check out", "/readyz?verbose&exclude=storage", 200, "[+]ping ok\n[+]storage excluded: ok\n[+]bootstrap ok\n[+]shutdown ok\nreadyz check passed\n"},
	{"exclude, several times", "/readyz?verbose&exclude=storage&exclude=ping", 200, "[+]ping excluded: ok\n[+]storage excluded: ok\n[+]bootstrap ok\n[+]shutdown ok\nreadyz check passed\n"},
	{"exclude of what is not there", "/livez?verbose&exclude=b&exclude=a", 200, "[+]ping ok\nwarn: some health checks cannot be excluded: no matches for \"a\",\"b\"\nlivez check passed\n"},
	{"exclude without verbose", "/livez?exclude=nothing", 200, "ok"},
	{"each check alone", "/livez/ping", 200, "ok"},
	{"each check alone, verbose", "/readyz/storage?verbose", 200, "ok"},
	{"shutdown", "/readyz/shutdown", 200, "ok"},
	{"bootstrap", "/healthz/bootstrap", 200, "ok"},
	{"livez does not depend on the database", "/livez/storage", 404, "404 page not found\n"},
	{"a check that is not there", "/readyz/nope", 404, "404 page not found\n"},
	{"below a check", "/readyz/ping/x", 404, "404 page not found\n"},
}

var startingRows = []probeRow{
	{"alive", "/livez", 200, "ok"},
	{"not ready", "/readyz", 500, "[+]ping ok\n[+]storage ok\n[-]bootstrap failed: not finished\n[+]shutdown ok\nreadyz check failed\n"},
	{"not ready, verbose", "/readyz?verbose", 500, "[+]ping ok\n[+]storage ok\n[-]bootstrap failed: not finished\n[+]shutdown ok\nreadyz check failed\n"},
	{"ready but for what is excluded", "/readyz?exclude=bootstrap", 200, "ok"},
	{"the check that fails", "/readyz/bootstrap", 500, "internal server error: not finished\n"},
	{"another check", "/readyz/ping", 200, "ok"},
}

var stoppingRows = []probeRow{
	{"alive while stopping", "/livez", 200, "ok"},
	{"healthz while stopping", "/healthz", 200, "ok"},
	{"not ready while stopping", "/readyz", 500, "[+]ping ok\n[+]storage ok\n[+]bootstrap ok\n[-]shutdown failed: process is shutting down\nreadyz check failed\n"},
	{"the shutdown check", "/readyz/shutdown", 500, "internal server error: process is shutting down\n"},
	{"ready but for the shutdown", "/readyz?exclude=shutdown", 200, "ok"},
}

var awayRows = []probeRow{
	{"not ready without a database", "/readyz", 500, "[+]ping ok\n[-]storage failed: database unavailable: connection refused\n[+]bootstrap ok\n[+]shutdown ok\nreadyz check failed\n"},
	{"alive without a database", "/livez", 200, "ok"},
	{"not healthy without a database", "/healthz?verbose", 500, "[+]ping ok\n[-]storage failed: database unavailable: connection refused\n[+]bootstrap ok\nhealthz check failed\n"},
	{"the storage check", "/readyz/storage", 500, "internal server error: database unavailable: connection refused\n"},
	{"ready but for the storage", "/readyz?exclude=storage", 200, "ok"},
}

func TestHealth(t *testing.T) {
	t.Run("well", func(t *testing.T) { checkProbes(t, start(t, Config{}), wellRows) })
	t.Run("starting", func(t *testing.T) {
		s := start(t, Config{})
		s.ready.Store(false)
		checkProbes(t, s, startingRows)
	})
	t.Run("stopping", func(t *testing.T) {
		s := New(Config{ShutdownDelay: time.Hour, ShutdownTimeout: 2 * time.Hour, Controllers: []string{}})
		if err := s.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() { defer close(stopped); _ = s.Shutdown(ctx) }() // cut off below
		for !s.stopping.Load() {
			time.Sleep(time.Millisecond)
		}
		checkProbes(t, s, stoppingRows)
		code, _, body := do(t, admin(t, s), "POST", s.URL()+"/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"late"}}`)
		if code != 201 {
			t.Errorf("a write during the delay: %d %s", code, body)
		}
		cancel()
		<-stopped
	})
	for name, begin := range map[string]func(testing.TB) *dbserver.Server{"postgres": logtest.StartPostgres, "mariadb": logtest.StartMariaDB} {
		t.Run(name+" away and back", func(t *testing.T) {
			t.Parallel()
			db := begin(t)
			s := start(t, Config{DSN: logtest.CreateDatabase(t, db)})
			db.Kill()
			await(t, s, awayRows[0])
			checkProbes(t, s, awayRows)
			if err := db.Start(); err != nil {
				t.Fatal(err)
			}
			await(t, s, probeRow{path: "/readyz", code: 200, body: "ok"})
		})
	}
}

// await asks until the answer is row's.
func await(t *testing.T, s *Server, row probeRow) {
	t.Helper()
	client := anonymous(t, s)
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		code, _, body := do(t, client, "GET", s.URL()+row.path, "")
		if code == row.code && body == row.body {
			return
		}
		if time.Since(begun) > time.Minute {
			t.Fatalf("%s: %d %q, want %d %q", row.path, code, body, row.code, row.body)
		}
	}
}

// checkProbes asks as everybody may, on a connection of its own.
func checkProbes(t *testing.T, s *Server, rows []probeRow) {
	client := anonymous(t, s)
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if row.code == 404 {
				client = admin(t, s)
			}
			code, header, body := do(t, client, "GET", s.URL()+row.path, "")
			if code != row.code || body != row.body {
				t.Errorf("%s: %d %q, want %d %q", row.path, code, body, row.code, row.body)
			}
			if got := header.Get("Content-Type"); got != "text/plain; charset=utf-8" {
				t.Errorf("%s: content type %s", row.path, got)
			}
			if header.Get("Cache-Control") != "no-cache, private" {
				t.Errorf("%s: Cache-Control %s", row.path, header.Get("Cache-Control"))
			}
		})
	}
}
