package main

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// consent are the flags of commands that ask before they change something.
type consent struct {
	dryRun string
	yes    bool
}

// tryHelp is that of --dry-run of these commands.
const tryHelp = "`how` to try it without changing anything: server, or none to do it"

func (c *consent) yesFlag() Flag {
	return Flag{Name: "yes", Short: "y", Set: boolean(&c.yes, false), Help: "do not ask"}
}

func (c *consent) dry() bool { return c.dryRun == "server" }

func (c *consent) dryNote() string {
	if c.dry() {
		return " (server dry run)"
	}
	return ""
}

// check refuses to begin what would have to ask where nobody can answer.
func (c *consent) check(cmd *cobra.Command) error {
	switch {
	case c.dryRun != "" && c.dryRun != "none" && c.dryRun != "server":
		return usagef("--dry-run: %q: write server, because only the server knows what admission and validation say", c.dryRun)
	case !c.yes && !c.dry() && !isTerminal(cmd.InOrStdin()):
		try := ""
		if c.dryRun != "" { // the command has the flag
			try = ", or --dry-run=server to see what it would do"
		}
		return usagef("nobody can be asked, because standard input is not a terminal: write --yes to do it%s", try)
	}
	return nil
}

// agree asks, unless the flags have answered.
func (c *consent) agree(cmd *cobra.Command, question string, args ...any) error {
	if c.yes || c.dry() {
		return nil
	}
	fmt.Fprint(cmd.ErrOrStderr(), printable(fmt.Sprintf(question, args...))+" [y/N] ")
	answered := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
		answered <- line
	}()
	select {
	case <-cmd.Context().Done():
		fmt.Fprintln(cmd.ErrOrStderr())
		return errDeclined
	case answer := <-answered:
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "y", "yes":
			return nil
		}
		return errDeclined
	}
}
