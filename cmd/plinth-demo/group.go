package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopTimeout bounds how long a program may take to end after SIGTERM. It is more than plinth's
// --shutdown-timeout.
const stopTimeout = 40 * time.Second

// group is a set of programs that run together. They are stopped in the reverse order of their
// start.
type group struct {
	logs, home string
	onDeath    func(error) // called with an error for each program that ends by itself; set before start

	mu       sync.Mutex
	stopping bool
	started  []*program
}

// program is a program that runs or has ended.
type program struct {
	name, log string
	cmd       *exec.Cmd
	ended     chan struct{} // closed when the program has ended and onDeath has been called
}

// newGroup returns a group of programs whose logs are in one directory and whose home is another.
func newGroup(logs, home string) (*group, error) {
	if err := os.MkdirAll(logs, 0o700); err != nil {
		return nil, err
	}
	return &group{logs: logs, home: home, onDeath: func(error) {}}, nil
}

// start runs a program. Its output goes to the log file NAME.log.
func (g *group) start(path string, args ...string) (*program, error) {
	p, log, err := g.prepare(path, args)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd.Stdout = log
	return p, g.run(p)
}

// startWithOutput is start for a program that prints a line when it serves: lines gets the first
// line that begins with "export KUBECONFIG=", and is closed at the end of the output.
func (g *group) startWithOutput(path string, args ...string) (p *program, lines <-chan string, err error) {
	p, log, err := g.prepare(path, args)
	if err != nil {
		return nil, nil, err
	}
	output, input, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, log.Close())
	}
	defer input.Close()
	p.cmd.Stdout = input
	if err := g.run(p); err != nil {
		return nil, nil, errors.Join(err, log.Close(), output.Close())
	}
	found := make(chan string, 1)
	go func() {
		defer close(found)
		defer log.Close()
		defer output.Close()
		for text := bufio.NewScanner(io.TeeReader(output, log)); text.Scan(); {
			if strings.HasPrefix(text.Text(), "export KUBECONFIG=") && len(found) == 0 {
				found <- text.Text()
			}
		}
	}()
	return p, found, nil
}

// prepare returns a program that is not started yet. Its standard error goes to its log file.
func (g *group) prepare(path string, args []string) (*program, *os.File, error) {
	name := filepath.Base(path)
	log, err := os.OpenFile(filepath.Join(g.logs, name+".log"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, err
	}
	p := &program{name: name, log: log.Name(), cmd: exec.Command(path, args...), ended: make(chan struct{})}
	p.cmd.Stderr = log
	return p, log, nil
}

// run starts p in a process group of its own, so that Ctrl-C reaches the demo alone, which
// ends the programs in order.
func (g *group) run(p *program) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopping {
		return errors.New("the demo is ending")
	}
	p.cmd.Dir, p.cmd.Env = g.home, append(os.Environ(), "HOME="+g.home)
	p.cmd.SysProcAttr = ownProcessGroup()
	if path, err := filepath.Abs(p.cmd.Path); err == nil {
		p.cmd.Path = path
	}
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w; make demo builds it", p.name, err)
	}
	g.started = append(g.started, p)
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // ProcessState has the result
		g.mu.Lock()
		defer g.mu.Unlock()
		if !g.stopping {
			g.onDeath(p.failure())
		}
	}()
	return nil
}

// failure says how the program ended, with the end of its log.
func (p *program) failure() error {
	return fmt.Errorf("%s ended (%v); the end of its log %s:\n%s", p.name, p.cmd.ProcessState, p.log, tail(p.log, 10))
}

// stop ends all programs, the last first, and waits for each.
func (g *group) stop() {
	g.mu.Lock()
	g.stopping = true
	started := g.started
	g.mu.Unlock()
	for i := len(started) - 1; i >= 0; i-- {
		started[i].stop()
	}
}

func (p *program) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// tail returns the last n lines of a file.
func tail(file string, n int) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-n):], "\n  ")
}
