package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore/backup"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/scrub"
)

const restoreHelp = `Fill an empty database with a backup.

The database is given as for serve and may be of another kind than the one that was backed up.
No plinth may serve it meanwhile. First the whole file is read and its checksum compared. Then
all objects are written in one transaction: a restore that fails leaves nothing in the database.

Objects keep their resourceVersions, but the database continues far above them, and everything
below is compacted: clients of the old database list anew and never mistake one version for
another. The database remembers where its objects came from, so that "plinth serve" takes it
for the one that it served before.

The exit code is 0 if everything was restored, 1 if nothing was, and 2 if the command was wrong.`

func newRestore() *cobra.Command {
	var dsn string
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Fill an empty database with a backup",
		Long:  restoreHelp,
		Example: `  plinth restore monday.plinth --dsn sqlite://plinth-data/plinth.db
  plinth restore monday.plinth --dsn postgres://plinth@db.example.com/plinth`,
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := oneFile(args, "the file of the backup")
			if err != nil {
				return err
			}
			return restoreFile(cmd.Context(), file, dsn, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	addFlags(cmd, dsnFlag(&dsn, "empty `database` to restore into, as for serve"))
	withVariables(cmd)
	return cmd
}

func restoreFile(ctx context.Context, file, dsn string, stdout, stderr io.Writer) error {
	switch {
	case file == "-":
		return usagef("a backup is read twice, so it cannot be standard input; write it to a file first")
	case dsn == "":
		return usagef("write the database to restore into: --dsn sqlite://plinth-data/plinth.db")
	case dialects.InMemory(dsn):
		return usagef("--dsn: a database in memory is gone at the end of the restore; write sqlite://PATH or a server's DSN")
	}
	if err := dialects.Check(dsn, dialects.Options{}); err != nil {
		return usagef("--dsn: %v", err)
	}
	begin := time.Now()
	if err := readThrough(ctx, file, stderr); err != nil {
		return aboutReading(ctx, err)
	}
	r, err := restoreInto(ctx, file, dsn, stderr)
	if err != nil {
		return aboutRestore(ctx, dsn, err)
	}
	what := "objects"
	if r.History {
		what = "rows with history"
	}
	fmt.Fprintf(stdout, "restored %d %s of cluster %s at revision %d into %s in %s; it continues above %d\n",
		r.Rows+r.Old, what, r.Cluster, r.Revision, dialects.Describe(dsn), secondsText(time.Since(begin)), r.Floor)
	return nil
}

// aboutReading is the error of readThrough, which has left nothing.
func aboutReading(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("interrupted; nothing was restored: restore again")
	}
	return err
}

// readThrough makes sure that a backup is whole before anything is done with it.
func readThrough(ctx context.Context, file string, stderr io.Writer) error {
	damaged := 0
	bar := newBar(stderr, "objects read")
	defer bar.end()
	err := withBackup(file, func(from io.Reader) error {
		_, report, err := backup.Verify(ctx, from, scrub.Options{Progress: func(rows, _ int64) { bar.tell(rows, 0) }})
		damaged = int(report.Problems)
		return err
	})
	if err == nil && damaged > 0 {
		fmt.Fprintf(stderr, "%s has %s that the database had when it was backed up; plinth verify %[1]s names them. They are restored as they are.\n", file, countOf(damaged, "problem"))
	}
	return err
}

func restoreInto(ctx context.Context, file, dsn string, stderr io.Writer) (r backup.Restored, err error) {
	target, err := openLog(ctx, "--dsn", dsn, dialects.Options{})
	if err != nil {
		return r, err
	}
	defer target.Close()
	bar := newBar(stderr, "objects restored")
	defer bar.end()
	err = withBackup(file, func(from io.Reader) error {
		r, err = backup.Restore(ctx, target, from, bar.tell)
		return err
	})
	return r, err
}

// withBackup opens a backup and names it in the error, if there is one.
func withBackup(file string, read func(io.Reader) error) error {
	from := io.Reader(os.Stdin)
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return usagef("%v; write the name of a backup", err)
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return usagef("%s is a directory; write the name of a backup in it", file)
		}
		from = f
	}
	err := read(from)
	switch {
	case errors.Is(err, backup.ErrNotBackup) && isSQLiteFile(file):
		return fmt.Errorf("%s is a SQLite database and %w; plinth verify sqlite://%[1]s reads it, and plinth backup --dsn sqlite://%[1]s makes a backup of it", file, err)
	case errors.Is(err, backup.ErrNotBackup):
		return fmt.Errorf("%s is %w; write the name of a file that plinth backup has written", file, err)
	case errors.Is(err, backup.ErrCut), errors.Is(err, backup.ErrAltered):
		return fmt.Errorf("%s was %w; take another backup, or another copy of this one", file, err)
	case errors.Is(err, backup.ErrNewer):
		return fmt.Errorf("%s was %w", file, err)
	}
	return err
}

// isSQLiteFile tells whether a file begins as databases of SQLite do.
func isSQLiteFile(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	const magic = "SQLite format 3\x00"
	begin := make([]byte, len(magic))
	_, err = io.ReadFull(f, begin)
	return err == nil && string(begin) == magic
}

// aboutRestore says what an error has left, and how to go on.
func aboutRestore(ctx context.Context, dsn string, err error) error {
	var usage *usageError
	switch {
	case errors.As(err, &usage), errors.Is(err, dialects.ErrDSN):
		return err
	case ctx.Err() != nil:
		return errors.New("interrupted; nothing was restored: restore again")
	case errors.Is(err, changelog.ErrNotEmpty):
		return fmt.Errorf("%s is not empty, and nothing was restored; write the DSN of an empty database, or %s, and restore again", dialects.Describe(dsn), emptying(dsn))
	case errors.Is(err, changelog.ErrUnknown):
		return fmt.Errorf("%w; plinth status --dsn says whether the objects are there, all of them or none", err)
	}
	return fmt.Errorf("%w; nothing was restored: mend that, and restore again", err)
}
