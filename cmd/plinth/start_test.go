package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/unit"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/jackc/pgx/v5"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
)

// stopBound is how long a start may go on after SIGTERM: a second or two, and what a busy
// machine adds.
const stopBound = time.Minute

// TestStopDuringStart sends SIGTERM at many moments of a start: the process ends soon,
// without a panic and without a file that is half-made, and the next start finds all in
// order. So it does where the start hangs in what it waits for.
func TestStopDuringStart(t *testing.T) {
	t.Parallel()
	for _, d := range logtest.Dialects {
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			dir, dsn := t.TempDir(), ""
			moments := []int{0, 20, 50, 100, 150, 200, 300, 400, 600, 900}
			if d.Servers > 1 { // what is made beside the database is the same
				moments = []int{0, 50, 100, 150, 250, 400}
			}
			for i, after := range moments {
				if i%3 == 0 { // the first start is the longest
					dir, dsn = t.TempDir(), d.Fresh(t)
				}
				stopAfter(t, dir, dsn, time.Duration(after)*time.Millisecond)
			}
			serveFor(t, filepath.Join(dir, "data"), dsn)
		})
	}
	for name, hang := range map[string]func(*testing.T) string{
		"silent postgres":    func(t *testing.T) string { return "postgres://u@" + silentPort(t) + "/d" },
		"silent mysql":       func(t *testing.T) string { return "mysql://u@" + silentPort(t) + "/d" },
		"locked migrations":  lockedMigrations,
		"locked file":        lockedFile,
		"unreachable server": func(t *testing.T) string { return "postgres://u@127.0.0.1:1/d" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := hang(t)
			for _, after := range []int{100, 1000, 3000} {
				stopAfter(t, t.TempDir(), dsn, time.Duration(after)*time.Millisecond)
			}
		})
	}
}

// TestStopOnFrozenDatabase lets the database server hang at many moments of a start.
func TestStopOnFrozenDatabase(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) *dbserver.Server{"postgres": logtest.StartPostgres, "mariadb": logtest.StartMariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := start(t)
			dsn, data := logtest.CreateDatabase(t, db), filepath.Join(t.TempDir(), "data")
			for _, after := range []int{20, 70, 120, 170} {
				cmd, stderr := plinth(t, nil, "serve", "--listen=127.0.0.1:0", "--data-dir="+data, "--dsn="+dsn, "--database-timeout=20m")
				ready := new(bytes.Buffer)
				cmd.Stdout = ready
				must(t, cmd.Start())
				time.Sleep(time.Duration(after) * time.Millisecond)
				must(t, db.Freeze())
				time.Sleep(100 * time.Millisecond) // it gets to where it hangs
				_ = cmd.Process.Signal(syscall.SIGTERM)
				begun := time.Now()
				_ = cmd.Wait()
				// A server that is ready finishes queued writes, and has more time for that.
				if took := time.Since(begun); took > stopBound && ready.Len() == 0 || bytes.Contains(stderr.Bytes(), []byte("panic")) {
					t.Errorf("frozen after %dms: ended %v after SIGTERM: %s", after, took, stderr)
				}
				must(t, db.Thaw())
			}
			serveFor(t, data, dsn)
		})
	}
}

func stopAfter(t *testing.T, dir, dsn string, after time.Duration) {
	t.Helper()
	cmd, stderr := plinth(t, nil, "serve", "--listen=127.0.0.1:0", "--data-dir="+filepath.Join(dir, "data"), "--dsn="+dsn, "--database-timeout=20m")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after) // the test is about this moment
	_ = cmd.Process.Signal(syscall.SIGTERM)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(stopBound):
		_ = cmd.Process.Signal(syscall.SIGQUIT) // shows where it hangs
		<-ended
		t.Fatalf("still running %v after SIGTERM, which came after %v: %s", stopBound, after, stderr)
	}
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if tooEarly := status.Signaled() && status.Signal() == syscall.SIGTERM; !tooEarly && status.ExitStatus() != 0 {
		t.Errorf("SIGTERM after %v: %v: %s", after, cmd.ProcessState, stderr)
	}
	if bytes.Contains(stderr.Bytes(), []byte("panic")) {
		t.Errorf("SIGTERM after %v: %s", after, stderr)
	}
	if half, _ := filepath.Glob(filepath.Join(dir, "*", "*.new")); len(half) > 0 {
		t.Errorf("SIGTERM after %v leaves %v", after, half)
	}
}

// silentPort returns an address that accepts connections and answers nothing.
func silentPort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// lockedMigrations is a Postgres database in which somebody migrates for ever.
func lockedMigrations(t *testing.T) string {
	dsn := logtest.Postgres(t)
	u, err := url.Parse(dsn)
	must(t, err)
	id, err := database.GenerateAdvisoryLockId(u.Path[1:], "public", "schema_migrations")
	must(t, err)
	conn, err := pgx.Connect(context.Background(), dsn)
	must(t, err)
	t.Cleanup(func() { conn.Close(context.Background()) })
	_, err = conn.Exec(context.Background(), `SELECT pg_advisory_lock(`+id+`)`)
	must(t, err)
	return dsn
}

// lockedFile is a SQLite database in which somebody else has a transaction open, as an
// administrator with its shell. SQLite waits for that without looking at any context.
func lockedFile(t *testing.T) string {
	dsn := logtest.SQLite(t)
	p := serveFor(t, filepath.Join(t.TempDir(), "data"), dsn)
	must(t, p.stop())
	shell := exec.Command("sqlite3", strings.TrimPrefix(dsn, "sqlite://"))
	stdin, err := shell.StdinPipe()
	must(t, err)
	stdout, err := shell.StdoutPipe()
	must(t, err)
	if err := shell.Start(); err != nil {
		t.Fatalf("%v: install the package sqlite3", err)
	}
	t.Cleanup(func() {
		stdin.Close()
		_ = shell.Wait()
	})
	fmt.Fprintln(stdin, "PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE; SELECT 'locked';")
	said := make([]byte, 64)
	for text := ""; !strings.Contains(text, "locked\n"); {
		n, err := stdout.Read(said)
		must(t, err)
		text += string(said[:n])
	}
	return dsn
}

// TestDatabaseTimeout checks --database-timeout, also with a server that accepts connections and
// answers nothing.
func TestDatabaseTimeout(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"serve --listen=127.0.0.1:0", "etcd --listen-client-urls=http://127.0.0.1:0"} {
		for _, scheme := range []string{"postgres", "mysql"} {
			cmd, stderr := plinth(t, nil, append(strings.Fields(command), "--data-dir="+t.TempDir(), "--database-timeout=5s", "--dsn="+scheme+"://u:s3cret@"+silentPort(t)+"/d")...)
			begun := time.Now()
			_ = cmd.Run()
			out := stderr.String()
			last := out[strings.LastIndexByte(strings.TrimSpace(out), '\n')+1:]
			if took := time.Since(begun); took > patience || cmd.ProcessState.ExitCode() != 1 {
				t.Errorf("%s: ended after %v with %v", scheme, took, cmd.ProcessState)
			}
			if !strings.HasPrefix(last, "plinth: open database: ") || !strings.Contains(last, "no answer within") ||
				!strings.Contains(last, "gave up after 5s, which --database-timeout sets: check that "+scheme+"://") || strings.Contains(out, "s3cret") {
				t.Errorf("%s: %s", scheme, out)
			}
		}
	}
}

// TestMissingGrant starts on a Postgres whose schema public is closed, as it is for all
// but its owner, without waiting and with the statement that opens it.
func TestMissingGrant(t *testing.T) {
	t.Parallel()
	dsn := logtest.Postgres(t)
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	must(t, err)
	t.Cleanup(func() { conn.Close(ctx) })
	role := fmt.Sprintf("plinth_%d", time.Now().UnixNano())
	_, err = conn.Exec(ctx, `CREATE ROLE `+role+` LOGIN PASSWORD 's3cret'; REVOKE CREATE ON SCHEMA public FROM public`)
	must(t, err)
	t.Cleanup(func() { _, _ = conn.Exec(ctx, `DROP OWNED BY `+role+` CASCADE; DROP ROLE `+role) })
	u, err := url.Parse(dsn)
	must(t, err)
	u.User = url.UserPassword(role, "s3cret")
	cmd, stderr := plinth(t, nil, "serve", "--listen=127.0.0.1:0", "--database-timeout=20m", "--dsn="+u.String())
	_ = cmd.Run()
	want := fmt.Sprintf("plinth: open database: user %q may not create tables in schema \"public\" of database %q; let an administrator run: GRANT CREATE, USAGE ON SCHEMA public TO \"%[1]s\"\n", role, u.Path[1:])
	if cmd.ProcessState.ExitCode() != 2 || complaint(stderr.String()) != want {
		t.Errorf("%v: %s", cmd.ProcessState, stderr)
	}
	_, err = conn.Exec(ctx, `GRANT CREATE, USAGE ON SCHEMA public TO "`+role+`"`)
	must(t, err)
	must(t, serveFor(t, filepath.Join(t.TempDir(), "data"), u.String()).stop())
}

// A service manager hears when plinth serves and when it begins to stop.
func TestNotify(t *testing.T) {
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: filepath.Join(t.TempDir(), "notify")})
	must(t, err)
	defer manager.Close()
	p := startPlinth(t, []string{"NOTIFY_SOCKET=" + manager.LocalAddr().String()}, "serve", "--listen", "127.0.0.1:0")
	if got := datagram(t, manager); !strings.HasPrefix(got, "READY=1\nSTATUS=serving https://127.0.0.1:") {
		t.Errorf("after the start: %q", got)
	}
	must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	if got := datagram(t, manager); got != "STOPPING=1" {
		t.Errorf("after SIGTERM: %q", got)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("ended with %v, on standard error: %s", err, p.stderr)
	}
	messages(t, p.stderr.String()) // fails the test if a record asks for attention
}

// A service manager that went away is no reason to stop serving.
func TestNotifyNobody(t *testing.T) {
	p := startPlinth(t, []string{"NOTIFY_SOCKET=" + filepath.Join(t.TempDir(), "gone")}, "serve", "--listen", "127.0.0.1:0")
	must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	if err := p.cmd.Wait(); err != nil || !strings.Contains(p.stderr.String(), "the service manager could not be told") {
		t.Errorf("ended with %v, on standard error: %s", err, p.stderr)
	}
}

func datagram(t *testing.T, c *net.UnixConn) string {
	t.Helper()
	must(t, c.SetReadDeadline(time.Now().Add(5*time.Minute)))
	buffer := make([]byte, 4096)
	n, err := c.Read(buffer)
	must(t, err)
	return string(buffer[:n])
}

var systemdUnit = filepath.Join("..", "..", "docs", "systemd", "plinth.service")

// TestUnitVerify has systemd-analyze check the unit. This binary replaces the program in the unit,
// because systemd-analyze looks for it.
func TestUnitVerify(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		fmt.Fprintln(os.Stderr, "TestUnitVerify: SKIPPED: systemd-analyze is not installed, so docs/systemd/plinth.service is not verified")
		t.Skip(err)
	}
	text, err := os.ReadFile(systemdUnit)
	must(t, err)
	self, err := os.Executable()
	must(t, err)
	copied := filepath.Join(t.TempDir(), "plinth.service")
	must(t, os.WriteFile(copied, bytes.ReplaceAll(text, []byte("/usr/local/bin/plinth"), []byte(self)), 0o600))
	// It succeeds even if it does not know a key, so its output has to be empty, too.
	if out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", copied).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}

// TestUnit runs the command of the unit, and checks that systemd gives a stop more time than plinth
// may take.
func TestUnit(t *testing.T) {
	options := unitOptions(t)
	for key, want := range map[string]string{"Type": "notify", "KillSignal": "SIGTERM", "RestartPreventExitStatus": "2"} {
		if options[key] != want {
			t.Errorf("%s=%s, want %s", key, options[key], want)
		}
	}
	stop, err := time.ParseDuration(options["TimeoutStopSec"])
	must(t, err)
	most, err := time.ParseDuration(newServe().Flags().Lookup("shutdown-timeout").DefValue)
	must(t, err)
	if stop <= most {
		t.Errorf("TimeoutStopSec=%v, but --shutdown-timeout is %v", stop, most)
	}
	command := strings.Fields(strings.ReplaceAll(options["ExecStart"], "%S", t.TempDir()))
	if command[0] != "/usr/local/bin/plinth" {
		t.Fatalf("ExecStart=%s", options["ExecStart"])
	}
	p := startPlinth(t, []string{"PLINTH_LISTEN=127.0.0.1:0"}, command[1:]...)
	if want := filepath.Join(command[len(command)-1], "kubeconfig"); p.kubeconfig != want {
		t.Errorf("kubeconfig %s, want %s", p.kubeconfig, want)
	}
}

// unitOptions returns the options of the unit. If a key occurs twice, the last value counts.
func unitOptions(t *testing.T) map[string]string {
	t.Helper()
	f, err := os.Open(systemdUnit)
	must(t, err)
	defer f.Close()
	list, err := unit.DeserializeOptions(f)
	must(t, err)
	options := map[string]string{}
	for _, o := range list {
		options[o.Name] = o.Value
	}
	return options
}
