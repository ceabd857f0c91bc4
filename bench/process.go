package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"time"

	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/bench/apiload"
	"github.com/plinth-io/plinth/bench/measure"
)

// process is a child as the measuring process sees it. Only one goroutine uses it.
type process struct {
	command []string
	first   order // makes it serve
	remove  func() error

	cmd     *exec.Cmd
	stdin   io.WriteCloser
	orders  *json.Encoder
	replies *json.Decoder
	stderr  bytes.Buffer // read after the end
	begun   time.Time
	target  answer // its address, its CA and the admin's certificate
}

// startPlinth starts a child that serves plinth as an order says, on a database that is made for it.
func (r *run) startPlinth(ctx context.Context, dsn string, o order) (*process, error) {
	s, err := measure.NewScratch(ctx, dsn, r.dir)
	if err != nil {
		return nil, err
	}
	o.Do, o.DSN = doPlinth, s.DSN
	p := &process{command: r.Command}
	if o.Dir, err = os.MkdirTemp(r.dir, "data-"); err == nil {
		err = p.start(ctx, o)
	}
	p.remove = func() error { return errors.Join(os.RemoveAll(o.Dir), s.Drop(context.WithoutCancel(ctx))) }
	if err != nil {
		return nil, errors.Join(err, p.remove())
	}
	return p, nil
}

// start starts the child and sends the first order. It does not stop the child when ctx ends: that stops by itself at
// the end of its input.
func (p *process) start(ctx context.Context, first order) error {
	if len(p.command) == 0 {
		return errors.New("no command is given for the processes to measure")
	}
	p.first, p.cmd = first, exec.CommandContext(context.WithoutCancel(ctx), p.command[0], p.command[1:]...)
	p.cmd.Stderr = &p.stderr
	p.cmd.Env = os.Environ()
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	p.stdin, p.orders, p.replies = in, json.NewEncoder(in), json.NewDecoder(out)
	p.begun = time.Now()
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.command[0], err)
	}
	if p.target, err = p.do(first); err != nil {
		return errors.Join(err, p.stop())
	}
	return nil
}

func (p *process) do(o order) (a answer, err error) {
	if err := p.orders.Encode(o); err != nil {
		return a, fmt.Errorf("give order: %w", err)
	}
	if err := p.replies.Decode(&a); err != nil {
		return a, fmt.Errorf("read answer to %q: %w", o.Do, err)
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

// config is how the admin reaches the server.
func (p *process) config() *clientrest.Config {
	return &clientrest.Config{Host: p.target.URL, TLSClientConfig: clientrest.TLSClientConfig{
		CAData: p.target.CA, CertData: p.target.Cert, KeyData: p.target.Key,
	}}
}

// dial makes clients that are connected.
func (p *process) dial(ctx context.Context, path string) (apiload.Clients, error) {
	return apiload.Dial(ctx, p.config(), measure.Connections, path)
}

// untilReady returns the time from the start of plinth until it was ready.
func (p *process) untilReady(ctx context.Context) (time.Duration, error) {
	c, err := apiload.New(p.config())
	if err != nil {
		return 0, err
	}
	defer apiload.Clients{c}.Close()
	err = c.UntilDone(ctx, http.MethodGet, "/readyz", nil)
	return time.Since(p.begun), err
}

// cpu returns the CPU time used so far.
func (p *process) cpu() (time.Duration, error) {
	a, err := p.do(order{Do: doUsage})
	return a.CPU, err
}

// stop ends the child. An error has what the child wrote to standard error.
func (p *process) stop() error {
	p.stdin.Close()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("measured process: %w: %s", err, bytes.TrimSpace(p.stderr.Bytes()))
	}
	return nil
}

// end ends a child that serves plinth, and removes its database and its data.
func (p *process) end() error { return errors.Join(p.stop(), p.remove()) }
