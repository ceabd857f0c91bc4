package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/cmd/plinth/units"
	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/sqlstore/backup"
)

const backupHelp = `Write all objects to a file, as they are at one revision, while plinth runs.

plinth is asked with an ordinary kubeconfig: the one that --kubeconfig names, or that is in
--data-dir, or that the variable KUBECONFIG names, else that in the default data directory, else
~/.kube/config. A user needs the right to create backups in the API group plinth.io; at first only
an administrator has it. With --dsn the command reads the database itself, whether a plinth serves
it or not; a SQLite database has to be on the same machine.

The name - stands for standard output. A FILE gets its name only when it is complete, and then
replaces an older file. With --history the backup also has old versions and deletions: those that
watches can still read, and those that --keep of serve keeps.

The file has all Secrets, as they are in the database: encrypted only if they are encrypted there.
Only its owner can read it. It is compressed, and has a checksum, which plinth verify and plinth
restore compare.

The exit code is 0 if the backup is complete, 1 if it failed, and 2 if the command was wrong.`

// backupJob is the command's flags and streams.
type backupJob struct {
	ask            statusQuery // whom to ask, if not the database
	dsn            string
	history        bool
	stdout, stderr io.Writer
	file           string
}

func newBackup() *cobra.Command {
	var b backupJob
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write all objects to a file",
		Long:  backupHelp,
		Example: `  plinth backup monday.plinth
  plinth backup --dsn postgres://plinth@db.example.com/plinth monday.plinth
  plinth backup - | age -r age1… > monday.plinth.age`,
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := oneFile(args, "the file to write, or - for standard output")
			if err != nil {
				return err
			}
			b.file, b.stdout, b.stderr = file, cmd.OutOrStdout(), cmd.ErrOrStderr()
			b.ask.inDataDir(cmd)
			return b.run(cmd.Context())
		},
	}
	addInOrder(cmd, append(b.ask.serverFlags(),
		dsnFlag(&b.dsn, dsnToReadHelp),
		historyFlag(boolean(&b.history, false), "also back up old versions and deletions, with their authors, as far as they are kept"),
	)...)
	return cmd
}

// oneFile returns the only argument.
func oneFile(args []string, what string) (string, error) {
	switch {
	case len(args) == 0 || args[0] == "":
		return "", usagef("write %s", what)
	case len(args) > 1:
		return "", usagef("unexpected %q; write only %s", args[1], what)
	}
	return args[0], nil
}

func (b *backupJob) run(ctx context.Context) error {
	if err := b.check(); err != nil {
		return err
	}
	begin := time.Now()
	taken, err := b.write(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted; there is no backup")
		}
		return err
	}
	told, where := b.stdout, b.file
	if b.file == "-" {
		told, where = b.stderr, "standard output"
	}
	what := fmt.Sprintf("%d objects", taken.Rows)
	if taken.History {
		what = fmt.Sprintf("%d rows with history", taken.Rows+taken.Old)
	}
	fmt.Fprintf(told, "backed up %s at revision %d to %s: %s in %s\n", what, taken.Revision, where, units.Bytes(taken.Size), secondsText(time.Since(begin)))
	return nil
}

func (b *backupJob) check() error {
	if b.file == "-" && isTerminal(b.stdout) {
		return usagef("standard output is a terminal, which a backup would garble; write the name of a file, or > FILE")
	}
	if b.dsn == "" {
		return nil
	}
	if b.ask.kubeconfig != "" || b.ask.context != "" {
		return usagef("--dsn reads the database, --kubeconfig and --context ask a server: write only one of them")
	}
	if dialects.InMemory(b.dsn) {
		return usagef("--dsn: a database in memory cannot be seen from outside its process; ask its plinth with --kubeconfig")
	}
	if err := dialects.Check(b.dsn, dialects.Options{}); err != nil {
		return usagef("--dsn: %v", err)
	}
	return nil
}

// write writes the backup to where the user wants it.
func (b *backupJob) write(ctx context.Context) (taken backup.Taken, err error) {
	source := b.fromServer
	if b.dsn != "" {
		source = b.fromDatabase
	}
	bar := newBar(b.stderr, "objects")
	defer bar.end()
	if b.file == "-" {
		return source(ctx, b.stdout, bar)
	}
	err = writeWhole(b.file, func(to io.Writer) error {
		taken, err = source(ctx, to, bar)
		return err
	})
	return taken, err
}

// fromDatabase reads the database.
func (b *backupJob) fromDatabase(ctx context.Context, to io.Writer, bar *bar) (t backup.Taken, err error) {
	log, err := peekAt(ctx, b.dsn)
	if err != nil {
		return t, err
	}
	defer log.Close()
	return backup.Take(ctx, log, to, backup.Options{Program: server.BuildInfo().Version, History: b.history, Progress: bar.tell})
}

// secondsText writes how long something took.
func secondsText(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
