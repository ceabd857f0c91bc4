package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

const undeleteHelp = `Create a deleted object again, as it was when it was deleted, or as it was at a moment.

It is created through admission and validation, as every other object, and is a new one: it gets a uid
and a resourceVersion of its own. Its status is not brought back. Owner references to objects that are
gone are left out and named, because with them the garbage collector would delete the object again.

Objects that were deleted with it, such as those in a namespace, are brought back one by one; an object
that a controller makes again, such as the Pods of a Deployment, need not be.`

// undeleteQuery is the command's flags.
type undeleteQuery struct {
	historyFlags
	consent
	results
	at string
}

func newUndelete() *cobra.Command {
	q := undeleteQuery{consent: consent{yes: true}} // it takes nothing away
	cmd := &cobra.Command{
		Use:   "undelete TYPE/NAME...",
		Short: "Bring deleted objects back",
		Long:  undeleteHelp,
		Example: `  plinth undelete deployments/web -n shop
  plinth undelete configmaps a b c --dry-run=server
  plinth undelete secrets/login --at 2d`,
		ValidArgsFunction: q.completeTrash,
		RunE:              q.run,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&q.at, "at", "", "`moment` whose state is brought back; by default the last")
	f.StringVar(&q.dryRun, "dry-run", "none", "`how` to try it without changing anything: server, or none to do it")
	complete(cmd, "dry-run", "none", "server")
	addResults(cmd, &q.results)
	addHistoryFlags(cmd, &q.historyFlags, false)
	completeMoments(cmd, "at")
	return cmd
}

func (q *undeleteQuery) run(cmd *cobra.Command, args []string) error {
	if err := errors.Join(q.results.check(), q.consent.check(cmd)); err != nil {
		return err
	}
	at, err := momentOf("at", q.at)
	if err != nil {
		return err
	}
	words, err := past.SplitWords(args)
	if err != nil {
		return err
	}
	if len(words) == 0 || words[0].Name == "" {
		return usagef("write an object, such as %s deployments/web; plinth trash lists them", cmd.CommandPath())
	}
	client, namespace, err := q.client(cmd)
	if err != nil {
		return err
	}
	return errors.Join(q.undeleteAll(cmd, client, namespace, words, at), q.results.print(cmd, len(words) > 1))
}

// undeleteAll brings back one object after the other. One that fails does not stop those after it.
func (q *undeleteQuery) undeleteAll(cmd *cobra.Command, client *past.Client, namespace string, words []past.Words, at past.Moment) error {
	failed := 0
	for _, word := range words {
		err := q.undelete(cmd, client, namespace, word, at)
		if err == nil {
			continue
		}
		if len(words) == 1 || cmd.Context().Err() != nil {
			return err
		}
		failed++
		fmt.Fprintf(cmd.ErrOrStderr(), "%s/%s: not undeleted: %s\n", word.Type, word.Name, oneLine(err))
	}
	if failed > 0 {
		return fmt.Errorf("%s of %d not undeleted", countOf(failed, "object"), len(words))
	}
	return nil
}

func (q *undeleteQuery) undelete(cmd *cobra.Command, client *past.Client, namespace string, word past.Words, at past.Moment) error {
	kind, err := client.FindKind(word.Type)
	if err != nil {
		return err
	}
	t := kind.In(namespace, word.Name)
	step, err := client.Undelete(cmd.Context(), t, at)
	if err != nil {
		return err
	}
	result, err := client.Do(cmd.Context(), step, q.dry())
	if err != nil {
		return err
	}
	warnOfLoss(cmd, step)
	q.add(t, result)
	what := "undeleted"
	if !q.dry() {
		what += ", revision " + result.GetResourceVersion()
	}
	fmt.Fprintf(q.text(cmd), "%s %s%s\n", t, what, q.dryNote())
	return nil
}
