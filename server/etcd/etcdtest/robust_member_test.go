package etcdtest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/bench/way"
	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server/etcd"
	"github.com/plinth-io/plinth/server/etcd/etcdtest"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

const (
	memberVariable = "PLINTH_TEST_ETCD_MEMBER"
	tightVariable  = "PLINTH_TEST_ETCD_TIGHT" // not empty: the member has next to nothing in memory
)

// TestMain makes the test binary a member that a test kills. It is built without Kubernetes, unlike plinth.
func TestMain(m *testing.M) {
	if dsn := os.Getenv(memberVariable); dsn != "" {
		fmt.Fprintln(os.Stderr, runMember(dsn))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// runMember serves the database at dsn as plinth etcd does, prints HOST:PORT, and goes on until its
// standard input ends.
func runMember(dsn string) error {
	ctx := context.Background()
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	log, err := openPatiently(ctx, dsn, logger)
	if err != nil {
		return err
	}
	o := sqlstore.Options{History: -1, Log: logger}
	if os.Getenv(tightVariable) != "" {
		o.WindowBytes, o.CacheBytes, o.Snapshots = 1, 1, 1
	}
	store, err := sqlstore.Open(ctx, log, o)
	if err != nil {
		return err
	}
	server := etcd.New(store, log, etcd.Options{WatchProgressInterval: time.Second, Log: logger})
	address, err := etcd.ParseAddress("http://127.0.0.1:0")
	if err != nil {
		return err
	}
	listener, err := address.Listen()
	if err != nil {
		return err
	}
	etcd.NewTransport(server, server.Pages(), etcd.TransportOptions{}).Serve(listener)
	go server.Run(ctx)
	fmt.Println(strings.TrimPrefix(listener.URL, "http://"))
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(errors.New("the test has ended"), err)
}

// openPatiently waits for a database that is away, as plinth etcd does.
func openPatiently(ctx context.Context, dsn string, logger *slog.Logger) (changelog.Log, error) {
	for end := time.Now().Add(etcdtest.Patience); ; time.Sleep(50 * time.Millisecond) {
		log, err := dialects.Open(ctx, dsn, dialects.Options{Kind: changelog.KindEtcd, Wait: 10 * time.Second, Log: logger})
		if !errors.Is(err, changelog.ErrUnavailable) || time.Now().After(end) {
			return log, err
		}
	}
}

// member is a process, behind a way that clients take to it, and one that it takes to the database.
type member struct {
	dsn      string
	clients  *way.Way // to the process
	database *way.Way // nil for SQLite
	tight    bool     // the next process has next to nothing in memory
	process  *exec.Cmd
	stdin    io.Closer
	log      strings.Builder // of the processes so far; read when they have ended
}

// start starts the process and waits until it serves.
func (m *member) start() error {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), memberVariable+"="+m.dsn)
	if m.tight {
		cmd.Env = append(cmd.Env, tightVariable+"=1")
	}
	m.tight = !m.tight
	cmd.Stderr = &m.log
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	m.process, m.stdin = cmd, stdin
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		m.kill()
		return fmt.Errorf("start a member: %w: %s", err, m.log.String())
	}
	m.clients.Lead(strings.TrimSpace(line))
	return nil
}

// kill ends the process as a crash does.
func (m *member) kill() {
	if m.process == nil {
		return
	}
	_ = m.process.Process.Kill()
	_ = m.process.Wait()
	m.stdin.Close()
	m.process = nil
}
