package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/cmd/plinth/past"
	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

const undoHelp = `Give an object the state back that it had before its last change, or at a moment.

The fields that the change touched get their earlier values; list items are found by their merge
keys. The result is written as a new revision, through admission and validation, like every other
change; the server tries it in a dry run first. The command shows the difference and asks for
confirmation. If the server refuses, or another client has changed the object meanwhile, nothing is
changed.

The last change is the newest one that a write can revert; changes of the status alone do not count.
If it created the object, undo deletes the object. A second undo brings the change back; --to ~2
goes further. With --change, one older change is reverted, and what was changed after it stays.

The status, the finalizers and the identity (uid, time of creation) stay as they are. Owner references
to objects that are gone are left out and named.

With --user, the command lists all changes of one user since a moment and, after your confirmation,
undoes them from the last to the first: changed fields get their earlier values, deleted objects are
created, and created objects are deleted. Objects that another user has changed since are named and
not changed; --force undoes these too. Changes of others to other fields stay, unless the object is
deleted or created again. Kubernetes' own components do not count as other users. The same holds for
a namespace or a definition that the user created, with objects of others in it. Objects that
components deleted because the user deleted a namespace, a definition or an owner are created, too.
If any object was not undone, the exit code is 1.

Without a terminal there is no confirmation: use --yes, or --dry-run=server.`

// undoQuery is the command's flags.
type undoQuery struct {
	historyFlags
	bringing
	to, user, since string
	change          int
	force           bool
	view            past.View
}

func newUndo() *cobra.Command {
	var q undoQuery
	cmd := &cobra.Command{
		Use:   "undo TYPE/NAME | --user USER --since MOMENT",
		Short: "Give an object an older state, or undo what a user did",
		Long:  undoHelp,
		Example: `  plinth undo deployments/web -n shop
  plinth undo deployments/web -n shop --to 12345 --dry-run=server
  plinth undo deployments/web -n shop --change 12345
  plinth undo --user ann --since 1h -n shop`,
		ValidArgsFunction: q.completeObjects,
		RunE:              q.run,
	}
	q.add(cmd, true,
		toFlag(text(&q.to, ""), "`moment` whose state the object gets: 2h, 14:00, \"2006-01-02 15:04\", a revision, or ~2 for that before the last two changes", moments),
		Flag{Name: "change", Set: number(&q.change, 0), Help: "`revision` of one change, which is reverted alone: what was changed after it stays"},
		userFlag(&q.user, "`name` of the user whose changes are undone"),
		sinceFlag(&q.since, "`moment` of the first of the user's changes that is undone"),
		forceFlag(&q.force, "with --user: also undo objects that others have changed or created since"),
		dryRunFlag(text(&q.dryRun, "none"), tryHelp, "none", "server"),
		q.consent.yesFlag(),
		q.results.flag(),
		showManagedFlag(&q.view.All, showManagedHelp),
	)
	return cmd
}

func (q *undoQuery) run(cmd *cobra.Command, args []string) error {
	switch {
	case q.user != "" && (len(args) > 0 || q.to != "" || q.change != 0):
		return usagef("--user undoes what the user did to all objects: leave out TYPE/NAME, --to and --change")
	case q.change != 0 && q.to != "":
		return usagef("--change reverts one change, and --to all since a moment: write one of them")
	case q.change < 0:
		return usagef("--change %d: write a revision, as plinth log shows it", q.change)
	case q.user != "" && q.since == "":
		return usagef("--since is missing: write the moment of the first change to undo, such as --since 1h")
	case q.user == "" && (q.since != "" || q.force || q.allNamespaces):
		return usagef("--since, --force and --all-namespaces go with --user: write --to 2h for the state of an object two hours ago")
	}
	if q.user == "" {
		if _, err := oneObject(cmd, args); err != nil {
			return err
		}
	}
	if err := errors.Join(q.results.check(), q.consent.check(cmd)); err != nil {
		return err
	}
	if q.user != "" {
		err := q.undoUser(cmd)
		return errors.Join(err, q.results.print(cmd, true))
	}
	if err := q.undoObject(cmd, args); err != nil {
		return err
	}
	return q.results.print(cmd, false)
}

func (q *undoQuery) undoObject(cmd *cobra.Command, args []string) error {
	to, err := momentOf("to", q.to)
	if err != nil {
		return err
	}
	if q.to != "" && to.IsNow() {
		return usagef("--to now changes nothing: write a moment in the past")
	}
	client, target, err := q.object(cmd, args, false)
	if err != nil {
		return err
	}
	var step *past.Step
	if q.change != 0 {
		step, err = client.Reverter.UndoChange(cmd.Context(), target, int64(q.change))
	} else {
		step, err = client.Reverter.Undo(cmd.Context(), target, to)
	}
	if err != nil {
		return err
	}
	if err := client.Reverter.Try(cmd.Context(), step); err != nil {
		return err
	}
	if step.Empty() {
		tell(cmd, "%s is already as it was then.", target)
		return nil
	}
	if err := q.showStep(cmd, step); err != nil {
		return err
	}
	if err := q.agree(cmd, "%s %s?", asked[step.Verb()], target); err != nil {
		return err
	}
	return q.play(cmd, client, step)
}

// showStep shows what a step changes, and what it does not bring back.
func (q *undoQuery) showStep(cmd *cobra.Command, step *past.Step) error {
	lines, err := step.Diff(q.view)
	if err != nil {
		return err
	}
	s := q.plainScreen(q.text(cmd))
	fmt.Fprintln(s, s.paint(bold, fmt.Sprintf("--- %s now", step.Target)))
	fmt.Fprintln(s, s.paint(bold, fmt.Sprintf("+++ %s undone", step.Target)))
	if err := s.diff(lines); err != nil {
		return err
	}
	warnOfLoss(cmd, step)
	for _, line := range listWithin(step.Within) {
		tell(cmd, "%s: deleted with it: %s", step.Target, line)
	}
	return nil
}

// listWithin names some objects of each resource: "3 configmaps: a, b, c".
func listWithin(all []historyv1.ObjectReference) (lines []string) {
	const most = 3
	names := map[string][]string{}
	for _, o := range all {
		names[o.Resource] = append(names[o.Resource], o.Name)
	}
	for _, resource := range slices.Sorted(maps.Keys(names)) {
		some := names[resource]
		more := ""
		if len(some) > most {
			more = fmt.Sprintf(" and %d more", len(some)-most)
		}
		lines = append(lines, fmt.Sprintf("%d %s: %s%s", len(some), resource, strings.Join(some[:min(most, len(some))], ", "), more))
	}
	return lines
}

// undoUser undoes what one user did.
func (q *undoQuery) undoUser(cmd *cobra.Command) error {
	since, err := momentOf("since", q.since)
	if err != nil {
		return err
	}
	if since.Back > 0 {
		return usagef("--since: write a time or a revision")
	}
	client, namespace, err := q.client(cmd)
	if err != nil {
		return err
	}
	deeds, err := client.Reverter.Deeds(cmd.Context(), past.Query{Namespace: namespace}.Bound("since", since), q.user)
	if err != nil {
		return err
	}
	ready, err := q.list(cmd, deeds)
	if err != nil {
		return err
	}
	if len(deeds) == 0 {
		tell(cmd, "There is nothing to undo of %s since %s.", q.user, since)
		return nil
	}
	failed := len(deeds) - len(ready)
	if len(ready) > 0 {
		if err := q.agree(cmd, "Undo what %s did to %s?", q.user, countOf(len(ready), "object")); err != nil {
			return err
		}
		notUndone, err := q.bringAll(cmd, client, ready, "undone")
		if err != nil {
			return err
		}
		failed += notUndone
	}
	if failed > 0 {
		return fmt.Errorf("%s of %d not undone", countOf(failed, "object"), len(deeds))
	}
	return nil
}

func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// list shows what the user did and what will be done, and returns what can be.
func (q *undoQuery) list(cmd *cobra.Command, deeds []*past.Deed) (ready []*past.Deed, err error) {
	s := q.plainScreen(q.text(cmd))
	titles := []string{"UNDO", "OBJECT", "CHANGES", "LAST"}
	if q.allNamespaces {
		titles = append([]string{"NAMESPACE"}, titles...)
	}
	rows := newTable(s, titles...)
	for _, deed := range deeds {
		verb, color := deed.Verb(), yellow
		switch {
		case len(deed.Others) == 0:
			ready = append(ready, deed)
		case q.force:
			ready = append(ready, deed)
			tell(cmd, "%s: %s", nameOf(deed.Object), atStake(deed))
		default:
			verb, color = "skip", red
			tell(cmd, "%s: skipped, because %s; %s", nameOf(deed.Object), atStake(deed), q.withForce(deed))
		}
		row := []cell{{color, verb}, {plain, deed.Object.Resource + "/" + deed.Object.Name}, {plain, revisionsOf(deed)}, {plain, s.when(deed.Changes[0].Time.Time)}}
		if q.allNamespaces {
			row = append([]cell{{plain, orDash(deed.Object.Namespace)}}, row...)
		}
		if err := rows.add(row...); err != nil {
			return nil, err
		}
	}
	return ready, rows.flush()
}

func nameOf(o historyv1.ObjectReference) string { return o.Resource + "/" + o.Name }

// withForce says what --force does to an object that others have changed.
func (q *undoQuery) withForce(deed *past.Deed) string {
	if deed.ByFields() {
		return "--force puts back the fields that " + q.user + " has changed, and leaves the others"
	}
	return "--force undoes that too"
}

// atStake names what others did to the object of a deed, or what is theirs and would be deleted with it.
func atStake(deed *past.Deed) string {
	other := deed.Others[0]
	if nameOf(other.Object) == nameOf(deed.Object) {
		return fmt.Sprintf("%s has changed it since, at revision %d", past.Person(other.Description), other.Revision)
	}
	more := ""
	if n := len(deed.Others) - 1; n > 0 {
		more = fmt.Sprintf(" and %s of others", countOf(n, "more object"))
	}
	return fmt.Sprintf("with it would be deleted %s, which %s has written at revision %d%s",
		nameOf(other.Object), past.Person(other.Description), other.Revision, more)
}

func revisionsOf(deed *past.Deed) string {
	const most = 3
	var all []string
	for i, change := range deed.Changes {
		if i == most {
			all = append(all, fmt.Sprintf("and %d more", len(deed.Changes)-most))
			break
		}
		all = append(all, fmt.Sprintf("%s %d", change.Action, change.Revision))
	}
	text := strings.Join(all, ", ")
	if because := deed.Because; because != nil {
		text += " with " + because.Object.Resource + "/" + because.Object.Name
	}
	return text
}

// errDeclined is the error of a question that was not answered with yes.
var errDeclined = errors.New("nothing was changed")
