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
from SQLite to Postgres and back. No plinth may serve either of them meanwhile. History
stays behind: resourceVersions go on above those of the old database, and clients list
anew when they meet the new one.`

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
	source, err := openLog(ctx, "--from", from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := openLog(ctx, "--to", to)
	if err != nil {
		return err
	}
	defer target.Close()
	n, err := sqlstore.Copy(ctx, target, source, nil)
	if errors.Is(err, sqlstore.ErrNotEmpty) {
		return fmt.Errorf("%w; write the DSN of an empty database", err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "copied %d objects\n", n)
	return nil
}

func openLog(ctx context.Context, flag, dsn string) (sqlstore.Log, error) {
	if err := dialects.Check(dsn, dialects.Options{}); err != nil {
		return nil, usagef("%s: %v", flag, err)
	}
	return dialects.Open(ctx, dsn, dialects.Options{})
}
