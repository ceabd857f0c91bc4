// Package dbserver starts throw-away Postgres and MariaDB servers from installed binaries.
//
// A server runs in a temporary directory on a free port of the loopback interface. It
// ends with Close, and also when the process that started it dies in whatever way: a
// shell waits for the end of a pipe that the process holds open, then kills the server
// and removes its directory.
package dbserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest/spent"
)

// startTimeout is generous: the machine may be busy with other tests.
const startTimeout = 2 * time.Minute

// Server is one database server. It is not safe for concurrent use.
type Server struct {
	kind   kind
	dir    string // holds data, socket, log and pid file
	port   int
	cred   *syscall.Credential // nil: as this process
	reaper io.Closer
	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has ended
	tls    []string      // arguments that switch TLS on
	extra  []string      // arguments of Use
}

// kind is what differs between the two servers.
type kind struct {
	name    string   // of the product
	users   []string // whom to run as instead of root, first that exists
	create  func(s *Server) error
	command func(s *Server) ([]string, error)
	dsn     func(port int, database string) string
	ping    func(ctx context.Context, dsn string) error
	stop    syscall.Signal // asks for a fast, clean shutdown
}

// ErrNotInstalled says that the binaries are missing.
var ErrNotInstalled = errors.New("not installed")

func start(k kind) (*Server, error) {
	defer spent.On("starting "+k.name, time.Now())
	s := &Server{kind: k}
	if err := s.prepare(); err != nil {
		s.Close()
		return nil, fmt.Errorf("start %s: %w", k.name, err)
	}
	// Another process may take the free port before the server does.
	var err error
	for range 5 {
		if s.port, err = FreePort(); err != nil {
			break
		}
		if err = s.startOnce(); err == nil {
			return s, nil
		}
	}
	s.Close()
	return nil, err
}

func (s *Server) prepare() (err error) {
	if s.dir, err = os.MkdirTemp("", "plinth-db-"); err != nil {
		return err
	}
	if s.reaper, err = startReaper(s.dir); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		if s.cred, err = credential(s.kind.users); err != nil {
			return err
		}
		if err := os.Chown(s.dir, int(s.cred.Uid), int(s.cred.Gid)); err != nil {
			return err
		}
	}
	return s.create()
}

// startReaper starts the shell that cleans up after this process.
func startReaper(dir string) (io.Closer, error) {
	cmd := exec.Command("sh", "-c", `
		cat >/dev/null
		for pid in $(head -qn1 "$1"/*.pid "$1"/data/*.pid 2>/dev/null); do
			children=$(cat "/proc/$pid/task/$pid/children" 2>/dev/null)
			kill -9 "$pid" 2>/dev/null
			for child in $children; do kill -CONT "$child" 2>/dev/null; done
		done
		rm -rf "$1"; sleep 1; rm -rf "$1"`, "reaper", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt from the terminal is not for it
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return reaper{stdin, cmd}, nil
}

type reaper struct {
	stdin io.Closer
	cmd   *exec.Cmd
}

func (r reaper) Close() error {
	r.stdin.Close()
	return r.cmd.Wait()
}

// credential returns the first user that exists: neither server runs as root.
func credential(names []string) (*syscall.Credential, error) {
	for _, name := range append(names, "nobody") {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, fmt.Errorf("no user to run it as: none of %v and nobody exists", names)
}

// run runs a program that sets the server up.
func (s *Server) run(program string, args ...string) error {
	var out bytes.Buffer
	cmd := s.prepared(program, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(program), err, bytes.TrimSpace(out.Bytes()))
	}
	return nil
}

func (s *Server) prepared(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = s.dir
	// MariaDB removes what it takes for its own temporary tables when it starts, those of other servers, too.
	cmd.Env = append(os.Environ(), "HOME="+s.dir, "TMPDIR="+s.dir, "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.cred}
	return cmd
}

// Start starts the server again after Stop or Kill, on the same port as before, and waits
// until it answers. The kernel may take a moment to let go of what a killed server held.
func (s *Server) Start() (err error) {
	defer spent.On("starting "+s.kind.name+" again", time.Now())
	for range 50 {
		if err = s.startOnce(); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

func (s *Server) startOnce() error {
	args, err := s.kind.command(s)
	if err != nil {
		return err
	}
	args = append(append(args, s.tls...), s.extra...)
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := s.prepared(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	s.cmd, s.exited = cmd, exited
	if err := s.await(); err != nil {
		s.Kill()
		return fmt.Errorf("start %s: %w: %s", s.kind.name, err, s.lastLines())
	}
	return nil
}

func (s *Server) await() error {
	return await(s.exited, func(ctx context.Context) error { return s.kind.ping(ctx, s.DSN("")) })
}

// await waits until ready returns no error. ended, which may be nil, says that it never will.
func await(ended <-chan struct{}, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return errors.New("it ended")
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *Server) lastLines() string {
	b, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// DSN returns how plinth calls a database of the server, or if it is empty the one for
// administration, with all rights.
func (s *Server) DSN(database string) string { return s.kind.dsn(s.port, database) }

// Use starts the server anew with more arguments.
func (s *Server) Use(args ...string) error {
	s.Stop()
	s.extra = args
	return s.Start()
}

// Stop shuts the server down cleanly. Connections are cut.
func (s *Server) Stop() { s.signal(s.kind.stop) }

// Kill ends all processes of the server as a crash of its machine does. Those of a Postgres whose first process
// alone is killed answer for a moment longer.
func (s *Server) Kill() {
	_ = s.Freeze() // so that none makes another
	pids, _ := s.signalAll(syscall.SIGKILL)
	s.signal(syscall.SIGKILL) // also where its processes cannot be found
	for _, pid := range pids {
		awaitState(pid, "ZX")
	}
}

func (s *Server) signal(sig syscall.Signal) {
	if s.cmd == nil {
		return
	}
	_ = s.Thaw() // a stopped process hears nothing but SIGKILL, and not its children
	_ = s.cmd.Process.Signal(sig)
	<-s.exited
	s.cmd = nil
}

// Close ends the server and removes everything it has written.
func (s *Server) Close() error {
	s.Kill()
	var err error
	if s.reaper != nil {
		err = s.reaper.Close()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// find returns the first of programs that exists, in PATH or in one of dirs (patterns).
func find(programs []string, dirs ...string) (string, error) {
	for _, program := range programs {
		if path, err := exec.LookPath(program); err == nil {
			return path, nil
		}
		for _, dir := range dirs {
			paths, _ := filepath.Glob(filepath.Join(dir, program))
			if len(paths) > 0 {
				return paths[len(paths)-1], nil
			}
		}
	}
	return "", fmt.Errorf("%s: %w", strings.Join(programs, " or "), ErrNotInstalled)
}

var errRunning = errors.New("the server is running")

// Save keeps a copy of all databases, instead of the one that is kept. The server is stopped.
func (s *Server) Save() error { return s.copyData("data", "saved") }

// Restore brings all databases back to what Save has kept. The server is stopped.
func (s *Server) Restore() error { return s.copyData("saved", "data") }

func (s *Server) copyData(from, to string) error {
	if s.cmd != nil {
		return fmt.Errorf("copy the data of %s: %w", s.kind.name, errRunning)
	}
	from, to = filepath.Join(s.dir, from), filepath.Join(s.dir, to)
	if err := s.run("rm", "-rf", to); err != nil {
		return err
	}
	return s.run("cp", "-a", from, to)
}
