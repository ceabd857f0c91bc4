package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

const forgetHelp = `Remove the old versions of an object for good, such as those of a Secret that should never have been
written. They cannot be restored. The current object stays, if it exists; the record of who changed
it and when is removed with the versions.

Old versions of other objects that only --history keeps are removed, too, within a minute; versions
that a rule of --keep keeps stay.

You need the rights to delete the object and to deletecollection versions in history.plinth.io.
Backups and replicas of the database keep their copies.`

// forgetQuery is the command's flags.
type forgetQuery struct {
	historyFlags
	consent
}

func newForget() *cobra.Command {
	var q forgetQuery
	cmd := &cobra.Command{
		Use:               "forget TYPE/NAME",
		Short:             "Remove the old versions of an object for good",
		Long:              forgetHelp,
		Example:           "  plinth forget secrets/login -n shop",
		ValidArgsFunction: q.completeObjects,
		RunE:              q.run,
	}
	q.add(cmd, false, q.consent.yesFlag())
	return cmd
}

func (q *forgetQuery) run(cmd *cobra.Command, args []string) error {
	if _, err := oneObject(cmd, args); err != nil {
		return err
	}
	if err := q.consent.check(cmd); err != nil {
		return err
	}
	client, target, err := q.object(cmd, args, true)
	if err != nil {
		return err
	}
	if err := q.agree(cmd, "Remove all old versions of %s for good?", target); err != nil {
		return err
	}
	message, err := client.History.Forget(cmd.Context(), target)
	if err != nil {
		return err
	}
	if message == "" {
		message = "forgotten"
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", target, message)
	return nil
}
