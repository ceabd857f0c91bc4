package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server/logging"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/transfer"
)

const copyHelp = `Copy all objects from one database to another, which must be empty.

Both are written as for serve and may be of different kinds, so that a cluster can move from SQLite
to Postgres and back. The source must exist. History is not copied: resourceVersions continue above
those of the old database, and clients list again on the new one. The last author of each object is
copied.

No plinth may serve either database meanwhile, unless --online is set. With it, plinth may continue
to serve the source. The copy follows the source, and at the end stops it for good: all writes to it
are refused, and plinth does not start on it any more. Then start plinth on the target. --prepare
does the same without the end; copy again later to finish. --take-back lets plinth serve the source
again, without the writes to the target.

The target records the source of its objects, so that "plinth serve" accepts it as the database that
it served before. plinth does not serve the target of an interrupted copy. The same command
continues the copy.`

// copyFlags are those of plinth copy.
type copyFlags struct {
	from, to                  string
	online, prepare, takeBack bool
}

func newCopy() *cobra.Command {
	var f copyFlags
	cmd := &cobra.Command{
		Use:   "copy",
		Short: "Copy all objects to another database",
		Long:  copyHelp,
		Args:  noArgs,
		Example: `  plinth copy --from sqlite://plinth-data/plinth.db --to postgres://plinth@db.example.com/plinth
  plinth copy --online --from sqlite://plinth-data/plinth.db --to postgres://plinth@db.example.com/plinth
  plinth copy --take-back --from sqlite://plinth-data/plinth.db`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.takeBack {
				return takeBack(cmd.Context(), f, cmd.OutOrStdout())
			}
			logger := logging.New(cmd.ErrOrStderr(), logging.Options{Format: logging.Text})
			return copyState(cmd.Context(), f, logger, cmd.OutOrStdout())
		},
	}
	addFlags(cmd,
		fromFlag(text(&f.from, ""), "`database` to copy from", schemes),
		toFlag(text(&f.to, ""), "empty `database` to copy to", schemes),
		Flag{Name: "online", Set: boolean(&f.online, false), Help: "plinth may serve the source meanwhile; the source is stopped at the end"},
		Flag{Name: "prepare", Set: boolean(&f.prepare, false), Help: "with --online: end before the source is stopped"},
		Flag{Name: "take-back", Set: boolean(&f.takeBack, false), Help: "let plinth serve the source of an online copy again"},
	)
	withVariables(cmd)
	return cmd
}

func (f *copyFlags) check() error {
	switch {
	case f.from == "" || f.to == "":
		return usagef("write both databases: --from sqlite://old.db --to postgres://user@host/db")
	case dialects.InMemory(f.to):
		return usagef("--to: a database in memory is gone at the end of the copy; write sqlite://PATH or a server's DSN")
	case f.prepare && !f.online:
		return usagef("--prepare: it is for copies with --online")
	case dialects.Same(f.from, f.to):
		return f.sameDatabase()
	}
	return nil
}

// sameDatabase is the error for a copy of a database to itself.
func (f *copyFlags) sameDatabase() error {
	return usagef("--from and --to are the same database, %s; write the DSN of another one, which is empty, as --to", dialects.Describe(f.from))
}

func copyState(ctx context.Context, f copyFlags, logger *slog.Logger, stdout io.Writer) error {
	if err := f.check(); err != nil {
		return err
	}
	source, err := openLog(ctx, "--from", f.from, dialects.Options{MustExist: true, Beside: f.online})
	if err != nil {
		return unlessCopied(ctx, err)
	}
	defer source.Close()
	target, err := openLog(ctx, "--to", f.to, dialects.Options{})
	if err != nil {
		return unlessCopied(ctx, err)
	}
	defer target.Close()
	if source.ClusterID() == target.ClusterID() { // by another name of the server
		return f.sameDatabase()
	}
	if served, err := servedNow(ctx, source); err == nil && served && !f.online {
		logger.Warn("a plinth serves the source, or was killed a moment ago; what it writes from now on is not copied: stop it and copy again, or copy with --online", "from", dialects.Describe(f.from))
	}
	p := copyProgress{logger: logger, pace: pace{time.Now()}}
	done, err := transfer.Copy(ctx, target, source, transfer.CopyOptions{Online: f.online, Prepare: f.prepare, Place: dialects.Describe(f.to), Progress: p.tell})
	if errors.Is(err, transfer.ErrCopied) {
		fmt.Fprintf(stdout, "%v, and the source is stopped; now start plinth on %s\n", transfer.ErrCopied, dialects.Describe(f.to))
		return nil
	}
	if err != nil {
		return f.explain(ctx, err, done)
	}
	fmt.Fprintln(stdout, f.summary(done))
	return nil
}

// summary says what was done.
func (f *copyFlags) summary(done transfer.Copied) string {
	switch {
	case f.prepare:
		return fmt.Sprintf("copied %d objects and %d changes; copy again without --prepare to stop the source and finish", done.Objects, done.Changes)
	case f.online:
		return fmt.Sprintf("copied %d objects and %d changes; writes were stopped for %s; now start plinth on %s",
			done.Objects, done.Changes, done.Stopped.Round(time.Millisecond), dialects.Describe(f.to))
	}
	return fmt.Sprintf("copied %d objects", done.Objects)
}

// explain says of a copy that failed what it has left, and how to go on.
func (f *copyFlags) explain(ctx context.Context, err error, done transfer.Copied) error {
	switch {
	case errors.Is(err, changelog.ErrNotEmpty):
		return fmt.Errorf("%w; write the DSN of an empty database", err)
	case errors.Is(err, transfer.ErrCannotResume):
		return fmt.Errorf("%w; plinth does not serve it: %s, then copy again", err, emptying(f.to))
	case errors.Is(err, changelog.ErrHalfCopied) && ctx.Err() != nil:
		return fmt.Errorf("interrupted after %d objects; plinth does not serve what is in %s: copy again to go on; or, to begin anew, %s", done.Objects, dialects.Describe(f.to), emptying(f.to))
	case errors.Is(err, changelog.ErrHalfCopied):
		return fmt.Errorf("%w; plinth does not serve it: copy again to go on; or, to begin anew, %s", err, emptying(f.to))
	}
	return unlessCopied(ctx, err)
}

var errNothingCopied = errors.New("interrupted before an object was copied; copy again")

// unlessCopied returns err, or that the command was ended before it had written anything.
func unlessCopied(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errNothingCopied
	}
	return err
}

// copyProgress logs what is copied now and then, and warns when the target does not catch up with the source.
type copyProgress struct {
	logger *slog.Logger
	pace
	objects int64 // when it was told
	behind  int64 // the fewest changes that were missing between the two tellings before; 0: nobody knows
	least   int64 // the fewest since it was told, plus one; 0: nobody knows
	rounds  int   // of tellings that have not come closer
}

const (
	// nearlyCopied is how many changes may be missing whatever becomes of them, and stuckRounds how many
	// rounds may come no closer, without a warning.
	nearlyCopied = 200
	stuckRounds  = 6
)

func (p *copyProgress) tell(done transfer.Copied) {
	if p.least == 0 || done.Behind < p.least-1 {
		p.least = done.Behind + 1
	}
	if !p.due() {
		return
	}
	closer := done.Objects > p.objects || p.behind == 0 || p.least-1 <= nearlyCopied || p.least-1 < p.behind-p.behind/100
	if p.rounds++; closer {
		p.rounds = 0
	}
	attrs := []any{"objects", done.Objects, "changes", done.Changes, "behind", done.Behind}
	if p.rounds >= stuckRounds {
		p.logger.Warn("the source is written faster than the target takes it, so the copy does not end: have clients write less, such as by stopping controllers for a while; or stop plinth, and copy without --online", attrs...)
	} else {
		p.logger.Info("copying", attrs...)
	}
	p.objects, p.behind, p.least = done.Objects, p.least-1, 0
}

// takeBack lets a source be served again that an online copy has stopped.
func takeBack(ctx context.Context, f copyFlags, stdout io.Writer) error {
	if f.from == "" || f.to != "" || f.online || f.prepare {
		return usagef("--take-back: write the database that was copied, and nothing else: plinth copy --take-back --from sqlite://old.db")
	}
	source, err := openLog(ctx, "--from", f.from, dialects.Options{MustExist: true, Beside: true})
	if err != nil {
		return err
	}
	defer source.Close()
	moved := changelog.CheckMoved(ctx, source)
	if moved == nil {
		return usagef("--take-back: %s has not moved", dialects.Describe(f.from))
	}
	if !errors.Is(moved, changelog.ErrMoved) {
		return moved
	}
	if err := transfer.TakeBack(ctx, source); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "plinth may serve %s again\n", dialects.Describe(f.from))
	return nil
}

// emptying says how the database of a DSN is emptied.
func emptying(dsn string) string {
	switch dialects.Scheme(dsn) {
	case "postgres", "mysql":
		return "run DROP VIEW objects, kv, history; DROP TABLE log, meta, lease, author, past, kept, schema_migrations in the target"
	}
	o, _ := dialects.SQLiteOptions(dsn)
	return fmt.Sprintf("remove %[1]s, %[1]s-wal and %[1]s-shm", o.Path)
}

func openLog(ctx context.Context, flag, dsn string, o dialects.Options) (changelog.Log, error) {
	if err := dialects.Check(dsn, o); err != nil {
		return nil, usagef("%s: %v", flag, err)
	}
	log, err := dialects.Open(ctx, dsn, o)
	if errors.Is(err, changelog.ErrNoLog) {
		return nil, usagef("%s: %v; write the DSN of a database that plinth has served", flag, err)
	}
	if errors.Is(err, changelog.ErrUnavailable) && dialects.Scheme(dsn) != "sqlite" && ctx.Err() == nil {
		err = fmt.Errorf("%s: %s: %w; check that it runs and takes connections from here, or write another DSN", flag, dialects.Describe(dsn), err)
	}
	return log, err
}
