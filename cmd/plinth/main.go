// Plinth serves the Kubernetes API from a SQL database.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// Exit codes: 0 done, 1 it did not work out, 2 it was asked for wrongly.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := untilSignal()
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "plinth:", oneLine(err))
	var usage *usageError
	if errors.As(err, &usage) || errors.Is(err, server.ErrConfig) || errors.Is(err, dialects.ErrDSN) {
		return 2
	}
	return 1
}

// untilSignal ends the context at SIGINT or SIGTERM. A second signal ends the process
// at once, as if it were not caught.
func untilSignal() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "plinth",
		Short:         "The Kubernetes API on a SQL database",
		Args:          noArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newServe(), newCopy(), newMigrateManifests(), newBench(), newBenchChild(), newVersion())
	return root
}

// usageError is a mistake on the command line or in the environment.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("unexpected %q; see %s --help", args[0], cmd.CommandPath())
}

func oneLine(err error) string {
	text := strings.TrimPrefix(err.Error(), server.ErrConfig.Error()+": ")
	return strings.Join(strings.Fields(strings.ReplaceAll(text, "\n", "; ")), " ")
}
