package torture

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plinth-io/plinth/bench/way"
	"github.com/plinth-io/plinth/dialects"
)

// replica is a plinth behind a way that clients take to it, and one that it takes to its database. One
// goroutine uses it at a time.
type replica struct {
	number   int
	command  []string
	dir      string
	dsn      string
	history  time.Duration
	clients  *way.Way
	database *way.Way // nil for SQLite
	tls      *tls.Config
	cmd      *exec.Cmd
	exited   chan struct{} // closed when cmd has ended
}

// newReplica starts the number-th plinth on a database.
func newReplica(ctx context.Context, o *Options, number int, dsn, dir string) (r *replica, err error) {
	r = &replica{number: number, command: o.Command, dir: filepath.Join(dir, fmt.Sprintf("replica-%d", number)), dsn: dsn, history: o.History}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return nil, err
	}
	if number > 0 {
		if err := CopyAuthority(filepath.Join(dir, "replica-0"), r.dir); err != nil {
			return nil, err
		}
	}
	if r.clients, err = way.New(""); err != nil {
		return nil, err
	}
	if dialects.Scheme(dsn) != "sqlite" {
		u, err := url.Parse(dsn)
		if err != nil {
			return nil, errors.New("the DSN cannot be parsed") // the parser's words repeat it
		}
		host := u.Host
		if number < len(o.Hosts) {
			host = o.Hosts[number]
		}
		if r.database, err = way.New(host); err != nil {
			return nil, err
		}
		u.Host = r.database.Address()
		r.dsn = u.String()
	}
	if err := r.start(ctx); err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(r.dir, "kubeconfig"))
	if err != nil {
		return nil, err
	}
	r.tls, err = clientrest.TLSConfigFor(config)
	return r, err
}

// CopyAuthority gives a data directory the authority of another one, so that both may serve one database.
func CopyAuthority(from, to string) error {
	if err := os.MkdirAll(filepath.Join(to, "pki"), 0o700); err != nil {
		return err
	}
	for _, file := range []string{"ca.crt", "ca.key"} {
		text, err := os.ReadFile(filepath.Join(from, "pki", file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, "pki", file), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// start starts the process and waits until it serves.
func (r *replica) start(ctx context.Context) error {
	args := append(r.command[1:len(r.command):len(r.command)], "--listen=127.0.0.1:0", "--data-dir="+r.dir, "--dsn="+r.dsn,
		"--history="+r.history.String(), "--keep=*=30m", "--controllers=none", "--database-timeout=5m")
	log, err := os.OpenFile(r.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(r.command[0], args...)
	cmd.SysProcAttr, cmd.Stderr = withParent(), log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start plinth: %w", err)
	}
	r.cmd, r.exited = cmd, make(chan struct{})
	give := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer give()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	go func(exited chan struct{}) {
		_ = cmd.Wait()
		close(exited)
	}(r.exited)
	_, url, found := strings.Cut(strings.TrimSpace(line), "# serving https://")
	if err != nil || !found {
		r.kill()
		return fmt.Errorf("replica %d does not start: %w: %s", r.number, errors.Join(err, ctx.Err()), r.lastLines())
	}
	r.clients.Lead(url)
	return nil
}

func (r *replica) logFile() string { return filepath.Join(r.dir, "log") }

// lastLines returns the end of the log.
func (r *replica) lastLines() string {
	text, _ := os.ReadFile(r.logFile())
	return string(text[max(0, len(text)-2000):])
}

// kill ends the process as a crash does.
func (r *replica) kill() {
	if r.cmd != nil {
		_ = r.cmd.Process.Kill()
		<-r.exited
		r.cmd = nil
	}
}

// signal sends a signal to the process, if there is one.
func (r *replica) signal(s syscall.Signal) {
	if r.cmd != nil {
		_ = r.cmd.Process.Signal(s)
	}
}

func (r *replica) close() {
	r.kill()
	r.clients.Close()
	if r.database != nil {
		r.database.Close()
	}
}
