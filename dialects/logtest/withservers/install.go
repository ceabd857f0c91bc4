package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
)

// mayInstall is an error if PLINTH_TEST_INSTALL forbids to install anything, and to pull images.
func mayInstall() error {
	if os.Getenv("PLINTH_TEST_INSTALL") == "0" {
		return errors.New("PLINTH_TEST_INSTALL=0 forbids it")
	}
	return nil
}

// tools are commands that tests and the documents use. Debian's packages have their names.
var tools = []string{"chromium", "curl", "openssl", "pgbouncer", "sqlite3"}

// wanted returns the packages that are missing and will be installed: those of databases, of tools and of
// clusters.
func wanted() (packages []string) {
	for _, tool := range tools {
		if !installed(tool) {
			packages = append(packages, tool)
		}
	}
	for _, n := range needs {
		if os.Getenv(n.env) == "" && !n.there() {
			packages = append(packages, n.pkg)
		}
	}
	for name := range strings.SplitSeq(os.Getenv("PLINTH_TEST_HA"), ",") {
		if !haPackages[name].there() {
			packages = append(packages, haPackages[name].packages...)
		}
	}
	return packages
}

// announce says what will be installed, before anything is, and gives those who sit at a terminal the time
// to end the command.
func announce(out io.Writer, packages []string, terminal bool, interrupted <-chan os.Signal) error {
	if len(packages) == 0 || mayInstall() != nil || os.Geteuid() != 0 {
		return nil
	}
	fmt.Fprintf(out, "withservers: tests need these packages, which are installed now with apt-get, because you are root: %s\n"+
		"withservers: PLINTH_TEST_INSTALL=0 forbids that; PLINTH_TEST_POSTGRES and PLINTH_TEST_MYSQL name servers to take instead\n", strings.Join(packages, " "))
	if !terminal {
		return nil
	}
	fmt.Fprintln(out, "withservers: press Ctrl-C within 5 seconds to leave it")
	select {
	case <-interrupted:
		return errors.New("interrupted; nothing was installed")
	case <-time.After(5 * time.Second):
		return nil
	}
}

// installTools installs the commands that tests and the documents use. The packages have their names.
// That is not an error here: tests have a stand-in for sqlite3, and say what else is missing.
func installTools() {
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err == nil {
			continue
		}
		if err := install(tool); err != nil {
			fmt.Fprintf(os.Stderr, "withservers: DOCUMENTS ARE PLAYED WITHOUT %s: %v\n", tool, err)
		}
	}
}

// install installs packages of Debian without starting the system's own server.
func install(packages ...string) error {
	names := strings.Join(packages, " ")
	if err := mayInstall(); err != nil {
		return fmt.Errorf("cannot install %s: %w", names, err)
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("cannot install %s: not root", names)
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("cannot install %s: %w", names, err)
	}
	undo, err := forbidServices()
	if err != nil {
		return err
	}
	defer undo()
	fmt.Fprintf(os.Stderr, "withservers: installing %s\n", names)
	for _, args := range [][]string{
		{"apt-get", "update", "-qq"},
		append([]string{"apt-get", "install", "-qq", "--yes", "--no-install-recommends"}, packages...),
	} {
		if err := quietly(append(os.Environ(), "DEBIAN_FRONTEND=noninteractive"), args...); err != nil {
			return err
		}
	}
	return nil
}

// forbidServices puts Debian's policy script in place that keeps packages from starting
// services, if there is none.
// https://people.debian.org/~hmh/invokerc.d-policyrc.d-specification.txt
func forbidServices() (undo func(), err error) {
	const policy = "/usr/sbin/policy-rc.d"
	f, err := os.OpenFile(policy, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if errors.Is(err, os.ErrExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(f, "#!/bin/sh\nexit 101\n")
	return func() { os.Remove(policy) }, errors.Join(err, f.Close())
}

// quietly runs a program and shows its output only if it fails.
func quietly(env []string, args ...string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// composeFile is fed to docker compose; ${PORT} is the one on the loopback interface.
var composeFiles = map[string]string{
	"Postgres": `
services:
  db:
    image: postgres:16
    environment: {POSTGRES_PASSWORD: plinth}
    ports: ["127.0.0.1:${PORT}:5432"]
`,
	"MariaDB": `
services:
  db:
    image: mariadb:10.11
    environment: {MARIADB_ROOT_PASSWORD: plinth}
    ports: ["127.0.0.1:${PORT}:3306"]
`,
}

// compose runs the server in a container.
func (n need) compose() (dsn string, stop func(), err error) {
	if err := mayInstall(); err != nil {
		return "", nil, fmt.Errorf("cannot run %s in a container: %w", n.product, err)
	}
	if _, err := exec.LookPath("docker"); err != nil {
		return "", nil, fmt.Errorf("cannot run %s in a container: %w", n.product, err)
	}
	number, err := dbserver.FreePort()
	if err != nil {
		return "", nil, err
	}
	port := strconv.Itoa(number)
	compose := func(args ...string) error {
		cmd := exec.Command("docker", append([]string{"compose", "-p", "plinth-test-" + port, "-f", "-"}, args...)...)
		cmd.Stdin = strings.NewReader(composeFiles[n.product])
		cmd.Env = append(os.Environ(), "PORT="+port)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("docker compose %s: %w\n%s", args[0], err, out)
		}
		return nil
	}
	stop = func() {
		if err := compose("down", "--volumes"); err != nil {
			fmt.Fprintln(os.Stderr, "withservers:", err)
		}
	}
	if err := compose("up", "--detach"); err != nil {
		return "", nil, err
	}
	dsn, ping := "postgres://postgres:plinth@127.0.0.1:"+port+"/postgres?sslmode=disable", dbserver.PingPostgres
	if n.product == "MariaDB" {
		dsn, ping = "mysql://root:plinth@127.0.0.1:"+port+"/mysql", dbserver.PingMySQL
	}
	if err := await(func(ctx context.Context) error { return ping(ctx, dsn) }); err != nil {
		stop()
		return "", nil, fmt.Errorf("%s in a container does not answer: %w", n.product, err)
	}
	return dsn, stop, nil
}

func await(ping func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for {
		err := ping(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
}
