// Plinth serves the Kubernetes API from a SQL database.
//
// This package is the command line: it turns flags and environment variables into a
// server.Config, one file for each subcommand, and prints what comes of it. A flag is one entry
// of a table; see Flag. The package must not know how requests are served.
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

	"github.com/plinth-io/plinth/cmd/plinth/past"
	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/nearest"
	"github.com/plinth-io/plinth/server"
)

func main() {
	os.Exit(runProgram(newProgram(), programArgs(programName(), os.Args[1:]), os.Stdout, os.Stderr))
}

// run returns the exit code: 0 for success, 1 for a failure, 2 for a mistake on the command line,
// in the environment or in the configuration.
func run(args []string, stdout, stderr io.Writer) int {
	return runProgram(newRoot(), args, stdout, stderr)
}

// runProgram is run for plinth, or for what it is called as.
func runProgram(root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	ctx, stop := untilSignal()
	defer stop()
	root.SetArgs(args)
	stdout, stderr = streamTo(stdout), streamTo(stderr)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, root.DisplayName()+":", printable(oneLine(err)))
	var usage *usageError
	var mistake *past.Mistake
	if errors.As(err, &usage) || errors.As(err, &mistake) || errors.Is(err, server.ErrConfig) || errors.Is(err, dialects.ErrDSN) {
		return 2
	}
	return 1
}

// untilSignal ends the context at SIGINT or SIGTERM. A second signal is not caught, so it ends
// the process at once.
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
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	var version bool
	addFlags(root, versionFlag(boolean(&version, false)))
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if version {
			return printBuild(cmd.OutOrStdout(), server.BuildInfo(), "")
		}
		return cmd.Help()
	}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newHistoryCommands()...)
	root.AddCommand(newServe(), newEtcd(), newKubeconfig(), newCerts(), newCopy(), newImport(), newExport(), newBackup(), newRestore(), newVerify(), newMigrateManifests(), newBench(), newBenchChild(), newTestAssets(), newDemo(), newJoinCommand(), newAddons(), newUI(), newStatus(), newVersion(), newDocs())
	root.SetHelpCommand(newHelp())
	root.InitDefaultCompletionCmd()
	refineCompletion(root)
	foldFlags(root)
	return root
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Print help for a command",
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return commandNames(cmd.Root()), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) > 0 {
				err = unknownCommand(found, rest[0])
			}
			if err != nil {
				return err
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

// usageError is a mistake on the command line or in the environment.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasSubCommands() {
		return unknownCommand(cmd, args[0])
	}
	return usagef("unexpected %q; see %s --help", args[0], cmd.CommandPath())
}

// unknownCommand is the error for a word that names no subcommand of cmd.
func unknownCommand(cmd *cobra.Command, word string) error {
	if meant := nearest.Of(word, commandNames(cmd)); meant != "" {
		return usagef("unknown command %q; did you mean %s %s?", word, cmd.CommandPath(), meant)
	}
	return usagef("unknown command %q; see %s --help", word, cmd.CommandPath())
}

func commandNames(cmd *cobra.Command) (names []string) {
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return names
}

func oneLine(err error) string {
	text := strings.TrimPrefix(err.Error(), server.ErrConfig.Error()+": ")
	return strings.Join(strings.Fields(strings.ReplaceAll(text, "\n", "; ")), " ")
}
