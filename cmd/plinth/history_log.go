package main

import (
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/cmd/plinth/past"
	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

const logHelp = `Show what changed: an object, all objects of a type, or all in the namespace.

Each line is a change: its revision, which is the object's new resourceVersion, its time, its effect
on the object, its user and field manager, and the verb of the request. "ann as bob" is a request
that ann made in bob's name. The newest change is first; with --follow it is last.

Controllers write the status all the time. Status writes of one user between two other changes are
one line, with their number and the revision of the newest. --status and --diff show each of them,
and --no-status none.

--diff names changes in list items by the merge keys of the list, and compares each item with its
earlier state, even if it has moved.

Changes of objects that you may not get are left out. So are changes that are older than the
namespace, unless you may get the same objects in all namespaces.`

// logQuery is the command's flags.
type logQuery struct {
	historyFlags
	since, until, user, verb, output string
	limit                            int
	diff, follow, status, noStatus   bool
	view                             past.View
}

func newLog() *cobra.Command {
	var q logQuery
	cmd := &cobra.Command{
		Use:   "log [TYPE[/NAME]]",
		Short: "Show what changed, when, and who did it",
		Long:  logHelp,
		Example: `  plinth log deployments/web -n shop
  plinth log deployments/web -n shop --diff --since 2h
  plinth log -n shop --user ann --verb delete --since 2h
  plinth log secrets -A --follow`,
		ValidArgsFunction: q.completeObjects,
		RunE:              q.run,
	}
	follow := followFlag(&q.follow, "also show later changes, as they are made")
	follow.Short = "f"
	q.add(cmd, true,
		sinceFlag(&q.since, "`moment` of the first change: 2h, 3d, 14:00, \"2006-01-02 15:04\", or a revision"),
		Flag{Name: "until", Set: text(&q.until, ""), Complete: moments, Help: "`moment` of the last change"},
		userFlag(&q.user, "`name` of the user who made the changes, also in another user's name, or in whose name they were made"),
		Flag{Name: "verb", Set: text(&q.verb, ""), Complete: values("create", "update", "patch", "apply", "delete", "deletecollection"),
			Help: "`verb` of the requests that made the changes, such as create, update, patch or delete"},
		Flag{Name: "status", Set: boolean(&q.status, false), Help: "show each write of a status"},
		Flag{Name: "no-status", Set: boolean(&q.noStatus, false), Help: "leave out writes of a status"},
		limitFlag(&q.limit, "`number` of changes at most, in text of lines; 0: all, with --follow 10 from before"),
		Flag{Name: "diff", Set: boolean(&q.diff, false), Help: "show the effect of each change on the object's YAML"},
		follow,
		showManagedFlag(&q.view.All, showManagedHelp),
		outputFlag(&q.output, "`format` to print in: json, yaml or wide; by default text", "json", "yaml", "wide"),
	)
	return cmd
}

// showManagedHelp is that of commands whose diffs leave these fields out.
const showManagedHelp = "show managedFields, resourceVersion and generation too"

func (q *logQuery) check() error {
	switch {
	case q.output != "" && q.output != "json" && q.output != "yaml" && q.output != "wide":
		return usagef("--output: %q: write json, yaml or wide, or leave it out for text", q.output)
	case q.diff && q.output != "" && q.output != "wide":
		return usagef("--diff is text: leave out --output %s, or see plinth diff -o json", q.output)
	case q.status && q.noStatus:
		return usagef("--status and --no-status: write only one of them")
	case q.limit < 0:
		return usagef("--limit %d: write a number above 0", q.limit)
	case q.follow && q.until != "":
		return usagef("--follow has no end: leave out --until")
	case q.follow && q.output == "yaml":
		return usagef("--follow prints text or JSON: leave out --output yaml")
	}
	return nil
}

func (q *logQuery) run(cmd *cobra.Command, args []string) error {
	if err := q.check(); err != nil {
		return err
	}
	query, err := q.bounds()
	if err != nil {
		return err
	}
	client, query, target, err := q.targets(cmd, args, query)
	if err != nil {
		return err
	}
	one := target.Name != ""
	switch {
	case q.follow:
		return q.tail(cmd, client, query, one)
	case q.output == "json" || q.output == "yaml":
		return q.printRaw(cmd, client, query)
	}
	none := func() error {
		if err := client.History.MayGet(cmd.Context(), target); err != nil {
			return err
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "No changes found.")
		return nil
	}
	return q.show(cmd, func(s *screen) error { return q.print(cmd, s, client, query, one, none) })
}

// bounds returns the query of the flags.
func (q *logQuery) bounds() (past.Query, error) {
	query := past.Query{Limit: q.limit}
	since, until, err := momentsOf("since", q.since, "until", q.until)
	if err != nil {
		return query, err
	}
	if since.Back > 0 || until.Back > 0 {
		return query, usagef("--since and --until: write a time or a revision; for the last changes write --limit")
	}
	if q.verb != "" {
		query = query.With(historyv1.FieldVerb, q.verb)
	}
	return query.Bound(historyv1.FieldSince, since).Bound(historyv1.FieldUntil, until), nil
}

// targets adds what the arguments name to the query, and returns it.
func (q *logQuery) targets(cmd *cobra.Command, args []string, query past.Query) (*past.Client, past.Query, past.Target, error) {
	var target past.Target
	words, err := past.SplitWords(args)
	if err != nil {
		return nil, query, target, err
	}
	if len(words) > 1 {
		return nil, query, target, usagef("write at most one object, such as %s deployments/web", cmd.CommandPath())
	}
	client, namespace, err := q.client(cmd)
	if err != nil || len(words) == 0 {
		query.Namespace = namespace
		return client, query, target, err
	}
	kind, err := client.History.FindPastKind(cmd.Context(), words[0].Type)
	target = kind.In(namespace, words[0].Name)
	target.Anywhere = q.allNamespaces
	return client, query.ToObject(target), target, err
}

func (q *logQuery) changes(cmd *cobra.Command, client *past.Client, query past.Query) iter.Seq2[historyv1.Change, error] {
	limit := query.Limit
	if q.noStatus {
		query.Limit = 0 // of those that are left
	}
	all := client.History.Changes(cmd.Context(), query)
	if q.user != "" {
		all = client.History.ByUser(cmd.Context(), query, q.user)
	}
	if q.noStatus {
		all = past.Limited(past.WithoutStatus(all), limit)
	}
	return all
}

func (q *logQuery) printRaw(cmd *cobra.Command, client *past.Client, query past.Query) error {
	if q.user == "" && !q.noStatus {
		list, err := client.History.RawChanges(cmd.Context(), query)
		if err != nil {
			return err
		}
		return printAs(cmd.OutOrStdout(), q.output, list)
	}
	list := changeList()
	for change, err := range q.changes(cmd, client, query) {
		if err != nil {
			return err
		}
		list.Items = append(list.Items, change)
	}
	return printAs(cmd.OutOrStdout(), q.output, list)
}

func changeList() historyv1.ChangeList {
	list := historyv1.ChangeList{Items: []historyv1.Change{}}
	list.SetGroupVersionKind(historyv1.GroupVersion.WithKind("ChangeList"))
	return list
}

func (q *logQuery) print(cmd *cobra.Command, s *screen, client *past.Client, query past.Query, one bool, none func() error) error {
	if q.diff {
		return q.printDiffs(cmd, s, client, query, one, none)
	}
	rows, shown, whole := q.table(s, one), 0, false
	for line, err := range q.lines(cmd, client, query) {
		if err != nil {
			return err
		}
		whole = one && line.Action == historyv1.Created // before that there was nothing of it
		if shown++; rows.add(q.row(s, line, one)...) != nil {
			break
		}
	}
	if shown == 0 {
		return tellKept(cmd, client, none())
	}
	if err := rows.flush(); err != nil || whole || q.limit > 0 && shown == q.limit {
		return err
	}
	return tellKept(cmd, client, nil)
}

// tellKept says, after what was found, that the history does not reach further.
func tellKept(cmd *cobra.Command, client *past.Client, err error) error {
	if kept := client.History.Kept(); err == nil && kept != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), kept)
	}
	return err
}

// lines returns the changes as text shows them: without --status with those of a status put together.
func (q *logQuery) lines(cmd *cobra.Command, client *past.Client, query past.Query) iter.Seq2[past.Summary, error] {
	if q.status || q.noStatus {
		return past.Each(q.changes(cmd, client, query))
	}
	query.Limit = 0 // of lines
	return past.Limited(past.Folded(q.changes(cmd, client, query)), q.limit)
}

// table returns a table of changes. The columns for the object are left out if there is only one.
func (q *logQuery) table(s *screen, one bool) *table {
	titles := []string{"REVISION", "WHEN", "ACTION"}
	if q.allNamespaces {
		titles = append(titles, "NAMESPACE")
	}
	if !one {
		titles = append(titles, "OBJECT")
	}
	titles = append(titles, "USER", "MANAGER", "VERB")
	if q.output == "wide" {
		titles = append(titles, "AUDIT-ID")
	}
	return newTable(s, titles...)
}

func (q *logQuery) row(s *screen, line past.Summary, one bool) []cell {
	d := line.Description
	row := []cell{{yellow, fmt.Sprint(d.Revision)}, {plain, s.when(d.Time.Time)}, {colorOfAction(d.Action), string(d.Action)}}
	if q.allNamespaces {
		row = append(row, cell{plain, orDash(d.Object.Namespace)})
	}
	if !one {
		row = append(row, cell{plain, objectsOf(line)})
	}
	row = append(row, cell{bold, past.Person(d)}, cell{plain, past.Manager(d)}, cell{plain, line.Way()})
	if q.output == "wide" {
		row = append(row, cell{faint, orDash(d.AuditID)})
	}
	return row
}

// objectsOf names the object of a line, or says how many there are.
func objectsOf(line past.Summary) string {
	if line.Objects > 1 {
		return countOf(line.Objects, "object")
	}
	return line.Object.Resource + "/" + line.Object.Name
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func colorOfAction(action historyv1.Action) string {
	switch action {
	case historyv1.Created:
		return green
	case historyv1.Deleted:
		return red
	}
	return plain
}

func (q *logQuery) printDiffs(cmd *cobra.Command, s *screen, client *past.Client, query past.Query, one bool, none func() error) error {
	first := true
	for entry, err := range client.History.WithDiffs(cmd.Context(), q.changes(cmd, client, query), q.view) {
		if err != nil {
			return err
		}
		if !first {
			if _, err := fmt.Fprintln(s); err != nil {
				return err
			}
		}
		first = false
		if err := q.printEntry(s, entry, one); err != nil {
			return err
		}
	}
	if first {
		return none()
	}
	return nil
}

// printEntry prints a change and its diff.
func (q *logQuery) printEntry(s *screen, entry past.Entry, one bool) error {
	for i, c := range q.row(s, past.One(entry.Change), one) {
		if i > 0 {
			fmt.Fprint(s, "  ")
		}
		fmt.Fprint(s, s.paint(c.color, c.text))
	}
	fmt.Fprintln(s)
	switch {
	case entry.Missing:
		_, err := fmt.Fprintln(s, s.paint(faint, "(the version before is not kept any more)"))
		return err
	case len(entry.Diff) == 0:
		_, err := fmt.Fprintln(s, s.paint(faint, "(no difference in what is shown)"))
		return err
	}
	return s.diff(entry.Diff)
}
