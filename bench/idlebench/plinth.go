package idlebench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// patience is how long plinth may take to start, and to end.
const patience = 2 * time.Minute

// plinth is a process of plinth that the run has started.
type plinth struct {
	cmd        *exec.Cmd
	kubeconfig string
	data       string
	output     bytes.Buffer // read after the end
	ended      chan error
}

func (o *Options) startPlinth(ctx context.Context, dir, dsn string, delay time.Duration) (_ *plinth, err error) {
	p := &plinth{ended: make(chan error, 1)}
	if p.data, err = os.MkdirTemp(dir, "data-"); err != nil {
		return nil, err
	}
	p.kubeconfig = filepath.Join(p.data, "kubeconfig")
	arguments := append(append([]string{}, o.Command[1:]...), "--listen", "127.0.0.1:0", "--data-dir", p.data, "--lease-commit-delay", delay.String())
	// It is not killed when ctx ends: stop ends it. The DSN may have a password, which others would see
	// among the arguments.
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), o.Command[0], arguments...)
	p.cmd.Env = append(os.Environ(), "PLINTH_DSN="+dsn)
	p.cmd.Stderr = &p.output
	ready, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Command[0], err)
	}
	said := make(chan error, 1)
	go func() { // ends with the process
		_, err := ready.Read(make([]byte, 1)) // the line that says where the kubeconfig is
		said <- err
		_, _ = bytes.NewBuffer(nil).ReadFrom(ready)
		p.ended <- p.cmd.Wait()
	}()
	select {
	case err = <-said:
	case <-time.After(patience):
		err = errors.New("it does not say that it serves")
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start: %w", err), p.stop())
	}
	return p, nil
}

// stop ends the process.
func (p *plinth) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case err := <-p.ended:
		if err != nil {
			err = fmt.Errorf("it ended badly: %w: %s", err, bytes.TrimSpace(p.output.Bytes()))
		}
		return errors.Join(err, os.RemoveAll(p.data))
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.ended
		return fmt.Errorf("it did not end within %v", patience)
	}
}
