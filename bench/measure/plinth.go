package measure

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

// Plinth is a process of plinth that serves.
type Plinth struct {
	Kubeconfig string        // file
	Took       time.Duration // from its start until it was ready

	cmd    *exec.Cmd
	output bytes.Buffer // read after the end
	ended  chan error
}

// StartPlinth starts plinth serve, whose command is given with its arguments, on a database, with a
// data directory. It returns when plinth is ready.
func StartPlinth(ctx context.Context, command []string, data, dsn string) (*Plinth, error) {
	p := &Plinth{Kubeconfig: filepath.Join(data, "kubeconfig"), ended: make(chan error, 1)}
	arguments := append(append([]string{}, command[1:]...), "--listen", "127.0.0.1:0", "--data-dir", data)
	// It is not killed when ctx ends: Stop ends it. The DSN may have a password, which others would see
	// among the arguments.
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), command[0], arguments...)
	p.cmd.Env = append(os.Environ(), "PLINTH_DSN="+dsn)
	p.cmd.Stderr = &p.output
	ready, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", command[0], err)
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
		return nil, errors.Join(fmt.Errorf("start: %w", err), p.Stop())
	}
	p.Took = time.Since(begun)
	return p, nil
}

// PID is the process.
func (p *Plinth) PID() int { return p.cmd.Process.Pid }

// Stop ends the process.
func (p *Plinth) Stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case err := <-p.ended:
		if err != nil {
			err = fmt.Errorf("it ended badly: %w: %s", err, bytes.TrimSpace(p.output.Bytes()))
		}
		return err
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.ended
		return fmt.Errorf("it did not end within %v", patience)
	}
}
