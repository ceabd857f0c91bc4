package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/bench/apiload"
)

// connections is the number of HTTP/2 connections that the load of a server measurement is spread
// over. Each stands for one client program: client-go sends all requests over one connection.
const connections = 8

// process is a child as the measuring process sees it. Only one goroutine uses it.
type process struct {
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	orders  *json.Encoder
	replies *json.Decoder
	stderr  bytes.Buffer // read after the end
	begun   time.Time
	target  answer // its address, its CA and the admin's certificate
}

// startProcess starts a child and sends the first order, which makes it serve.
func (r *run) startProcess(ctx context.Context, first order) (*process, error) {
	if len(r.Child) == 0 {
		return nil, errors.New("no command is given for the processes to measure")
	}
	// The child is not killed when ctx ends, because it stops by itself at the end of its input.
	p := &process{cmd: exec.CommandContext(context.WithoutCancel(ctx), r.Child[0], r.Child[1:]...)}
	p.cmd.Stderr = &p.stderr
	p.cmd.Env = os.Environ()
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.stdin, p.orders, p.replies = in, json.NewEncoder(in), json.NewDecoder(out)
	p.begun = time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", r.Child[0], err)
	}
	if p.target, err = p.do(first); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
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

// dialMany makes clients that are connected.
func (p *process) dialMany(ctx context.Context, n int, path string) ([]*apiload.Client, error) {
	return apiload.Dial(ctx, p.config(), n, path)
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
