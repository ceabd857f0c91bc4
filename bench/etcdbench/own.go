package etcdbench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/dialects"
)

// ownPatience is how long plinth may take to answer after its start, and to end.
const ownPatience = time.Minute

// own is a process of plinth that the run has started, and its database.
type own struct {
	scratch *measure.Scratch
	cmd     *exec.Cmd
	output  tail
	ended   chan error // gets what Wait returns
	took    time.Duration
	data    string // directory, if there is one
}

// startOwn starts plinth on a scratch database beside the one that dsn names.
func (r *run) startOwn(ctx context.Context, dsn string) (_ *endpoint, err error) {
	o := &own{ended: make(chan error, 1)}
	if o.scratch, err = measure.NewScratch(ctx, dsn, r.dir); err != nil {
		return nil, err
	}
	e, err := r.runOwn(ctx, o)
	if err != nil {
		return nil, errors.Join(err, o.stop(context.WithoutCancel(ctx)))
	}
	e.Name, e.Own = dialects.Scheme(dsn), true
	return e, nil
}

func (r *run) runOwn(ctx context.Context, o *own) (*endpoint, error) {
	url, err := freeURL()
	if err != nil {
		return nil, err
	}
	// Its data directory is new, too: a known one would refuse a database that it has not served.
	if o.data, err = os.MkdirTemp(r.dir, "data-"); err != nil {
		return nil, err
	}
	arguments := append(append([]string{}, r.Command[1:]...), "--listen-client-urls", url, "--data-dir", o.data)
	// It is not killed when ctx ends: stop ends it. Its DSN may have a password, which others would
	// see among its arguments.
	o.cmd = exec.CommandContext(context.WithoutCancel(ctx), r.Command[0], append(arguments, r.Arguments...)...)
	o.cmd.Stdout, o.cmd.Stderr, o.cmd.Env = &o.output, &o.output, append(os.Environ(), "PLINTH_DSN="+o.scratch.DSN)
	begun := time.Now()
	if err := o.cmd.Start(); err != nil {
		o.cmd = nil
		return nil, fmt.Errorf("start %s: %w", r.Command[0], err)
	}
	go func() { o.ended <- o.cmd.Wait() }()
	if err := o.untilListening(ctx, url); err != nil {
		return nil, err
	}
	e, err := dial(ctx, Other{URL: url, Name: "plinth"}, TLS{})
	o.took = time.Since(begun)
	if err != nil {
		return nil, err
	}
	e.own, e.pids = o, []int{o.cmd.Process.Pid}
	return e, nil
}

// freeURL names a port of the loopback interface that was free a moment ago.
func freeURL() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return "http://" + l.Addr().String(), l.Close()
}

// untilListening waits until somebody listens at url. A client of gRPC that is refused once waits a
// second before it tries again.
func (o *own) untilListening(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, ownPatience)
	defer cancel()
	for {
		conn, err := net.Dial("tcp", url[len("http://"):])
		if err == nil {
			return conn.Close()
		}
		select {
		case ended := <-o.ended:
			o.cmd = nil
			return fmt.Errorf("plinth's endpoint has ended: %w: %s", ended, o.output.text())
		case <-ctx.Done():
			return fmt.Errorf("plinth's endpoint does not listen: %w: %s", ctx.Err(), o.output.text())
		case <-time.After(time.Millisecond):
		}
	}
}

// stop ends the process and drops its database.
func (o *own) stop(ctx context.Context) (err error) {
	if o.cmd != nil {
		err = o.end()
	}
	if o.data != "" {
		err = errors.Join(err, os.RemoveAll(o.data))
	}
	return errors.Join(err, o.scratch.Drop(context.WithoutCancel(ctx)))
}

func (o *own) end() error {
	_ = o.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case err := <-o.ended:
		if err != nil {
			return fmt.Errorf("plinth's endpoint ended badly: %w: %s", err, o.output.text())
		}
		return nil
	case <-time.After(ownPatience):
		_ = o.cmd.Process.Kill()
		<-o.ended
		return fmt.Errorf("plinth's endpoint did not end within %v: %s", ownPatience, o.output.text())
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte // guarded by mu
}

const tailBytes = 2000

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	t.b = t.b[max(len(t.b)-tailBytes, 0):]
	return len(p), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.b))
}
