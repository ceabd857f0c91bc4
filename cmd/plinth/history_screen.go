package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/util/duration"
)

// screen is where a command shows the past: a terminal, with colours and relative times, or something
// that a program reads. What is written to it has no control characters, neither there nor here: output that
// goes through another program mostly ends on a terminal too.
type screen struct {
	io.Writer
	terminal bool
	color    bool
}

// show runs a command that writes much. On a terminal its output goes through a pager.
func (q *historyFlags) show(cmd *cobra.Command, write func(s *screen) error) error {
	out := cmd.OutOrStdout()
	s := q.plainScreen(out)
	file := fileOf(out)
	if pager := pagerOf(os.LookupEnv); file != nil && s.terminal && !q.noPager && pager != "" {
		return paged(file, pager, func(w io.Writer) error {
			s.Writer = w
			return write(s)
		})
	}
	return write(s)
}

// plainScreen returns the screen without a pager.
func (q *historyFlags) plainScreen(out io.Writer) *screen {
	s := &screen{Writer: ownOf(out), terminal: isTerminal(out)}
	s.color = q.color == "always" || q.color == "auto" && s.terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return s
}

func isTerminal(stream any) bool {
	file := fileOf(stream)
	return file != nil && term.IsTerminal(int(file.Fd()))
}

// pagerOf returns the command of the pager, nothing if there is to be none: as for git, a variable that is
// set and empty says so.
func pagerOf(lookup func(string) (string, bool)) string {
	pager := "less"
	for _, variable := range []string{"PAGER", "PLINTH_PAGER"} {
		if value, set := lookup(variable); set {
			pager = value
		}
	}
	if pager == "cat" {
		return ""
	}
	return pager
}

// paged runs write with the pager's input. When the pager ends, so does write, without an error.
func paged(out *os.File, pager string, write func(io.Writer) error) error {
	cmd := exec.Command("sh", "-c", pager)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	cmd.Env = os.Environ()
	if os.Getenv("LESS") == "" {
		cmd.Env = append(cmd.Env, "LESS=FRX") // no pager for one screen, colours, and the text stays
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return write(out) // no shell
	}
	err = write(in)
	in.Close()
	var exit *exec.ExitError
	ended := cmd.Wait()
	if errors.As(ended, &exit) && exit.ExitCode() == 127 { // the shell did not find it
		return errors.Join(err, usagef("the pager %q cannot be run: set PLINTH_PAGER, or write --no-pager", pager))
	}
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// The colours are those of git.
const (
	plain  = ""
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
	faint  = "\x1b[2m"
	bold   = "\x1b[1m"
	reset  = "\x1b[m"
)

// paint returns a text that has no control characters but those of the colour.
func (s *screen) paint(color, text string) string {
	text = printable(text)
	if !s.color || color == plain || text == "" {
		return text
	}
	return color + text + reset
}

// text returns where text goes that may have control characters: on a terminal they are shown.
func (s *screen) text() io.Writer {
	if s.terminal {
		return &console{out: s.Writer}
	}
	return s.Writer
}

// diff writes the lines of a unified diff.
func (s *screen) diff(lines []string) error {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(s.paint(colorOfDiff(line), line) + "\n")
	}
	_, err := io.WriteString(s, b.String())
	return err
}

func colorOfDiff(line string) string {
	switch {
	case strings.HasPrefix(line, "@@"):
		return cyan
	case strings.HasPrefix(line, "+"):
		return green
	case strings.HasPrefix(line, "-"):
		return red
	}
	return plain
}

// when writes a time: how long ago it was for people, else exactly.
func (s *screen) when(t time.Time) string {
	if s.terminal {
		return duration.HumanDuration(time.Since(t)) + " ago"
	}
	return t.UTC().Format(time.RFC3339)
}
