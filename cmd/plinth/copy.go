package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore"
)

const copyHelp = `Copy all objects from one database to another, which must be empty.

Both are given as for serve and may be of different kinds, so that a cluster can move
from SQLite to Postgres and back. No plinth may serve either of them meanwhile. The source
must exist. History stays behind: resourceVersions go on above those of the old database,
and clients list anew when they meet the new one.

The target remembers where its objects came from, so that "plinth serve" takes it for the
database that it served before. A copy that is interrupted leaves a target that is not
served; the error says how to empty it.`

func newCopy() *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use:     "copy",
		Short:   "Copy all objects to another database",
		Long:    copyHelp,
		Args:    noArgs,
		Example: `  plinth copy --from sqlite://plinth-data/plinth.db --to postgres://plinth@db.example.com/plinth`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := applyEnv(cmd); err != nil {
				return err
			}
			return copyState(cmd.Context(), from, to, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "`database` to copy from")
	cmd.Flags().StringVar(&to, "to", "", "empty `database` to copy to")
	documentEnv(cmd)
	return cmd
}

func copyState(ctx context.Context, from, to string, stdout io.Writer) error {
	if from == "" || to == "" {
		return usagef("write both databases: --from sqlite://old.db --to postgres://user@host/db")
	}
	if dialects.InMemory(to) {
		return usagef("--to: a database in memory is gone at the end of the copy; write sqlite://PATH or a server's DSN")
	}
	source, err := openLog(ctx, "--from", from, dialects.Options{MustExist: true})
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := openLog(ctx, "--to", to, dialects.Options{})
	if err != nil {
		return err
	}
	defer target.Close()
	n, err := sqlstore.Copy(ctx, target, source, nil)
	if errors.Is(err, sqlstore.ErrNotEmpty) {
		return fmt.Errorf("%w; write the DSN of an empty database", err)
	}
	if errors.Is(err, sqlstore.ErrHalfCopied) {
		return fmt.Errorf("%w; plinth does not serve it: %s, then copy again", err, emptying(to))
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "copied %d objects\n", n)
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

func openLog(ctx context.Context, flag, dsn string, o dialects.Options) (sqlstore.Log, error) {
	if err := dialects.Check(dsn, o); err != nil {
		return nil, usagef("%s: %v", flag, err)
	}
	log, err := dialects.Open(ctx, dsn, o)
	if errors.Is(err, sqlstore.ErrNoLog) {
		return nil, usagef("%s: %v; write the DSN of a database that plinth has served", flag, err)
	}
	return log, err
}
