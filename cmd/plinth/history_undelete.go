package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

const undeleteHelp = `Create a deleted object again, as it was when it was deleted, or as it was at a moment.

It is created through admission and validation, like every other object, with a new uid and a new
resourceVersion. Its status is not restored. Owner references to objects that are gone are left out
and named, because the garbage collector would delete the object again because of them. With
--cascade, objects that Kubernetes' own components deleted because of it are created after it:

the objects in a namespace, the objects of a definition, and the objects that it owned. Events are
not created, nor are objects that a controller creates again, such as the Pods of a Deployment. If
any object was not created, the exit code is 1.`

// undeleteQuery is the command's flags.
type undeleteQuery struct {
	historyFlags
	bringing
	at      string
	cascade bool
}

func newUndelete() *cobra.Command {
	q := undeleteQuery{bringing: bringing{consent: consent{yes: true}}} // it takes nothing away
	cmd := &cobra.Command{
		Use:   "undelete TYPE/NAME...",
		Short: "Bring deleted objects back",
		Long:  undeleteHelp,
		Example: `  plinth undelete deployments/web -n shop
  plinth undelete configmaps a b c --dry-run=server
  plinth undelete secrets/login --at 2d
  plinth undelete namespaces/shop --cascade`,
		ValidArgsFunction: q.completeTrash,
		RunE:              q.run,
	}
	q.add(cmd, false,
		atFlag(&q.at, "`moment` whose state is brought back; by default the last"),
		Flag{Name: "cascade", Set: boolean(&q.cascade, false), Help: "also bring back objects that were deleted because of it, such as the objects in a namespace"},
		dryRunFlag(text(&q.dryRun, "none"), tryHelp, "none", "server"),
		q.results.flag(),
	)
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
	if q.cascade && !at.IsNow() {
		return usagef("--cascade brings back what was there when the object was deleted: leave out --at")
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
	return errors.Join(q.undeleteAll(cmd, client, namespace, words, at), q.results.print(cmd, len(words) > 1 || q.cascade))
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
		tell(cmd, "%s/%s: not undeleted: %s", word.Type, word.Name, oneLine(err))
	}
	if failed > 0 {
		return fmt.Errorf("%s of %d not undeleted", countOf(failed, "object"), len(words))
	}
	return nil
}

func (q *undeleteQuery) undelete(cmd *cobra.Command, client *past.Client, namespace string, word past.Words, at past.Moment) error {
	kind, err := client.Kinds.Find(word.Type)
	if err != nil {
		return err
	}
	t := kind.In(namespace, word.Name)
	if q.cascade {
		return q.undeleteCascading(cmd, client, t)
	}
	step, err := client.Reverter.Undelete(cmd.Context(), t, at)
	if err != nil {
		return err
	}
	if err := q.play(cmd, client, step); err != nil {
		return err
	}
	warnOfLoss(cmd, step)
	return nil
}

// undeleteCascading brings back an object, and then what was deleted because of it.
func (q *undeleteQuery) undeleteCascading(cmd *cobra.Command, client *past.Client, t past.Target) error {
	deeds, err := client.Reverter.UndeleteAll(cmd.Context(), t)
	if err != nil {
		return err
	}
	if err := q.bring(cmd, client, deeds[0]); err != nil {
		return err
	}
	failed, err := q.bringAll(cmd, client, deeds[1:], "undeleted")
	if err == nil && failed > 0 {
		err = fmt.Errorf("%s of %d not undeleted", countOf(failed, "object"), len(deeds))
	}
	return err
}
