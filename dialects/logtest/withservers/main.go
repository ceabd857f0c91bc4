// Command withservers runs a command with real database servers to test against:
//
//	go run ./dialects/logtest/withservers -- go test ./...
//	go run ./dialects/logtest/withservers -durable -- go run ./cmd/plinth bench
//
// It exports PLINTH_TEST_POSTGRES and PLINTH_TEST_MYSQL. Where they are set already it
// leaves them alone. Else it starts throw-away servers from installed binaries; if there
// are none it installs them with apt-get (as root), or else runs the servers with docker
// compose. It says before what it installs; PLINTH_TEST_INSTALL=0 forbids to install anything and to pull
// images. It also installs commands that the documents use, and the clusters that PLINTH_TEST_HA names, if they
// are missing and it may.
// The output and exit code are those of the command. With -durable the servers that it starts
// sync their writes, which benchmarks need; tests are faster without. With -memory they, and the temporary files of
// the command, are in memory if there is room; what Go builds and the directories of t.TempDir stay where they were
// (GOTMPDIR). With -pgbouncer there is PgBouncer
// before Postgres, in transaction mode.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
)

func main() {
	durable := flag.Bool("durable", false, "servers that are started sync their writes")
	memory := flag.Bool("memory", false, "temporary files are in memory, if there is room")
	pooled := flag.Bool("pgbouncer", false, "PgBouncer is before Postgres")
	flag.Parse()
	if flag.NArg() == 0 || *durable && *memory {
		fmt.Fprintln(os.Stderr, "usage: withservers [-durable | -memory] [-pgbouncer] -- COMMAND [ARGUMENT]...")
		os.Exit(2)
	}
	code, err := run(flag.Args(), *durable, *memory, *pooled)
	if err != nil {
		fmt.Fprintln(os.Stderr, "withservers:", err)
	}
	os.Exit(code)
}

// need is one server that tests want.
type need struct {
	env     string
	product string
	pkg     string // Debian's
	start   func(durable bool) (*dbserver.Server, error)
	there   func() bool // start finds its programs
}

var needs = []need{
	{"PLINTH_TEST_POSTGRES", "Postgres", "postgresql", dbserver.StartPostgres, dbserver.PostgresInstalled},
	{"PLINTH_TEST_MYSQL", "MariaDB", "mariadb-server", dbserver.StartMariaDB, dbserver.MariaDBInstalled},
}

func run(args []string, durable, memory, pooled bool) (code int, err error) {
	// An interrupt from the terminal reaches the command too; other signals are passed on.
	// Either way it ends, and then the servers do.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	if err := announce(os.Stderr, wanted(), term.IsTerminal(int(os.Stderr.Fd())), signals); err != nil {
		return 130, err
	}
	if memory {
		remove, err := scratch()
		if err != nil {
			return 1, err
		}
		defer func() { _ = remove() }()
	}
	env, stop, err := provide(durable)
	defer func() { stop() }()
	if err == nil && pooled {
		env, stop, err = pool(env, stop)
	}
	if err != nil {
		return 1, err
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), env...)
	if err := cmd.Start(); err != nil {
		return 127, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for waiting := true; waiting; {
		select {
		case s := <-signals:
			if s != syscall.SIGINT {
				_ = cmd.Process.Signal(s)
			}
		case err = <-ended:
			waiting = false
		}
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}

// scratch sets where temporary files go.
func scratch() (remove func() error, err error) {
	dir, remove, err := dbserver.Scratch()
	if err != nil || dir == "" {
		return remove, err
	}
	if os.Getenv("GOTMPDIR") == "" {
		err = os.Setenv("GOTMPDIR", os.TempDir())
	}
	kept := filepath.Join(dir, "new")
	return remove, errors.Join(err, os.Setenv("TMPDIR", dir), os.Mkdir(kept, 0o700), os.Chmod(kept, 0o777|os.ModeSticky), os.Setenv(dbserver.KeepEnv, kept))
}

// provide makes sure that all servers are there and returns what to add to the
// environment; stop undoes it, also after an error.
func provide(durable bool) (env []string, stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, f := range stops {
			f()
		}
	}
	installTools()
	installHA()
	for _, n := range needs {
		if os.Getenv(n.env) != "" {
			continue
		}
		dsn, end, err := n.provide(durable)
		if err != nil {
			return nil, stop, err
		}
		stops = append(stops, end)
		env = append(env, n.env+"="+dsn)
	}
	return env, stop, nil
}

func (n need) provide(durable bool) (dsn string, stop func(), err error) {
	server, err := n.start(durable)
	if !errors.Is(err, dbserver.ErrNotInstalled) {
		return started(server, err)
	}
	installErr := install(n.pkg)
	if installErr == nil {
		return started(n.start(durable))
	}
	dsn, stop, composeErr := n.compose()
	if composeErr == nil {
		return dsn, stop, nil
	}
	return "", nil, fmt.Errorf("no %s server: set %s, or install the package %s\n\t%w\n\t%w\n\t%w", n.product, n.env, n.pkg, err, installErr, composeErr)
}

// pool puts PgBouncer before Postgres.
func pool(env []string, stop func()) ([]string, func(), error) {
	const variable = "PLINTH_TEST_POSTGRES"
	dsn := os.Getenv(variable)
	for _, entry := range env {
		if value, found := strings.CutPrefix(entry, variable+"="); found {
			dsn = value
		}
	}
	server, err := dbserver.StartPgBouncer(dsn)
	if errors.Is(err, dbserver.ErrNotInstalled) {
		if err = install("pgbouncer"); err == nil {
			server, err = dbserver.StartPgBouncer(dsn)
		}
	}
	pooled, end, err := started(server, err)
	if err != nil {
		return env, stop, err
	}
	return append(env, variable+"="+pooled), func() { end(); stop() }, nil
}

func started(server *dbserver.Server, err error) (string, func(), error) {
	if err != nil {
		return "", nil, err
	}
	return server.DSN(""), func() {
		if err := server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "withservers:", err)
		}
	}, nil
}
