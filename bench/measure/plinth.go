package measure

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/plinth-io/plinth/dialects"
)

// patience is how long plinth may take to start, and to end.
const patience = 5 * time.Minute

// Plinth is a process of plinth that serves. One goroutine uses it at a time.
type Plinth struct {
	URL        string        // that it serves
	Took       time.Duration // from its start until it was ready
	Kubeconfig string        // file that plinth serve writes
	Log        string        // file that it writes its log to, after the log of the process before it

	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended
	err   error         // that it ended with
}

// servedURL is in the line that plinth prints when it is ready.
var servedURL = regexp.MustCompile(`https?://[^\s,]+`)

// StartPlinth starts a command that serves, on a database and with a data directory, and returns when it is ready.
// The process ends with this one, but not with ctx.
func StartPlinth(ctx context.Context, command []string, data, dsn string) (*Plinth, error) {
	p := &Plinth{Kubeconfig: filepath.Join(data, "kubeconfig"), Log: filepath.Join(data, "log"), ended: make(chan struct{})}
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd = exec.Command(command[0], append(command[1:len(command):len(command)], "--data-dir", data)...)
	// The DSN may have a password, which others would see among the arguments.
	p.cmd.Env, p.cmd.Stderr, p.cmd.SysProcAttr = append(os.Environ(), "PLINTH_DSN="+dsn), log, withParent()
	output, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", command[0], err)
	}
	ready := make(chan string, 1)
	go p.wait(output, ready)
	select {
	case p.URL = <-ready:
		if p.URL == "" {
			err = errors.New("it does not say that it serves")
		}
	case <-time.After(patience):
		err = fmt.Errorf("it is not ready within %v", patience)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		p.Kill()
		return nil, fmt.Errorf("start %s: %w: %s", command[0], err, p.lastLines())
	}
	p.Took = time.Since(begun)
	return p, nil
}

// wait reads what the process prints, of which the first line says what it serves, and waits for its end.
func (p *Plinth) wait(output io.Reader, ready chan<- string) {
	lines := bufio.NewReader(output)
	first, _ := lines.ReadString('\n') // an error means that it has ended
	ready <- servedURL.FindString(first)
	_, _ = io.Copy(io.Discard, lines)
	p.err = p.cmd.Wait()
	close(p.ended)
}

// PID is the process.
func (p *Plinth) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal to the process, which may have ended.
func (p *Plinth) Signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// Kill ends the process as a crash does.
func (p *Plinth) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.ended
}

// Stop ends the process.
func (p *Plinth) Stop() error {
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		if p.err != nil {
			return fmt.Errorf("plinth ended badly: %w: %s", p.err, p.lastLines())
		}
		return nil
	case <-time.After(patience):
		p.Kill()
		return fmt.Errorf("plinth did not end within %v", patience)
	}
}

// lastLines returns the end of the log.
func (p *Plinth) lastLines() []byte {
	text, _ := os.ReadFile(p.Log)
	return bytes.TrimSpace(text[max(0, len(text)-2000):])
}

// Own is a plinth on a database that was made for it.
type Own struct {
	*Plinth
	Name  string // of the kind of database
	Files string // directory of SQLite's files

	command []string
	data    string
	scratch *Scratch
}

// StartOwn starts a command that serves, on a scratch database beside the one that dsn names. Everything that is
// written to files is in dir.
func StartOwn(ctx context.Context, command []string, dir, dsn string) (_ *Own, err error) {
	o := &Own{Name: dialects.Scheme(dsn), command: command}
	if o.scratch, err = NewScratch(ctx, dsn, dir); err != nil {
		return nil, err
	}
	o.Files = o.scratch.Dir
	// The data directory is new, too: a known one would refuse a database that it has not served.
	if o.data, err = os.MkdirTemp(dir, "data-"); err == nil {
		o.Plinth, err = StartPlinth(ctx, command, o.data, o.scratch.DSN)
	}
	if err != nil {
		return nil, errors.Join(err, o.Stop(ctx))
	}
	return o, nil
}

// Restart ends the process and starts another on the same database.
func (o *Own) Restart(ctx context.Context) error {
	err := o.Plinth.Stop()
	o.Plinth = nil
	if err == nil {
		o.Plinth, err = StartPlinth(ctx, o.command, o.data, o.scratch.DSN)
	}
	return err
}

// Stop ends the process, and removes its database and its data.
func (o *Own) Stop(ctx context.Context) (err error) {
	if o.Plinth != nil {
		err = o.Plinth.Stop()
	}
	return errors.Join(err, os.RemoveAll(o.data), o.scratch.Drop(context.WithoutCancel(ctx)))
}
