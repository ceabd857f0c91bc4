package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plinth-io/plinth/cmd/plinth/past"
	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

const trashHelp = `Show deleted objects that do not exist any more, as far as they are kept, the newest first. plinth
undelete brings one back.`

// trashQuery is the command's flags.
type trashQuery struct {
	historyFlags
	since, user, output string
	limit               int
}

func newTrash() *cobra.Command {
	var q trashQuery
	cmd := &cobra.Command{
		Use:   "trash [TYPE]",
		Short: "Show deleted objects that can be brought back",
		Long:  trashHelp,
		Example: `  plinth trash -n shop
  plinth trash configmaps -A --since 2d
  plinth trash --user ann -o json`,
		ValidArgsFunction: q.completeTypes,
		RunE:              q.run,
	}
	q.add(cmd, true,
		sinceFlag(&q.since, "`moment` of the first deletion: 2h, 3d, 14:00, \"2006-01-02 15:04\", or a revision"),
		userFlag(&q.user, "`name` of the user who deleted the objects"),
		limitFlag(&q.limit, "`number` of objects at most; 0: all"),
		outputFlag(&q.output, outputHelp, "json", "yaml"),
	)
	return cmd
}

func (q *trashQuery) run(cmd *cobra.Command, args []string) error {
	if err := checkOutput(q.output); err != nil {
		return err
	}
	if len(args) > 1 {
		return usagef("write at most one type, such as %s configmaps", cmd.CommandPath())
	}
	since, err := momentOf("since", q.since)
	if err != nil {
		return err
	}
	if since.Back > 0 || q.limit < 0 {
		return usagef("--since takes a time or a revision, and --limit a number above 0")
	}
	client, namespace, err := q.client(cmd)
	if err != nil {
		return err
	}
	query := past.Query{Namespace: namespace}
	if len(args) == 1 {
		kind, err := client.History.FindPastKind(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		query = query.ToObject(kind.In(namespace, ""))
	}
	query = query.Bound(historyv1.FieldSince, since)
	if q.output != "" {
		return q.printList(cmd, client, query)
	}
	return q.show(cmd, func(s *screen) error { return q.print(cmd, s, client, query) })
}

// each calls what with each deletion that the flags mean.
func (q *trashQuery) each(cmd *cobra.Command, client *past.Client, query past.Query, what func(historyv1.Change) error) error {
	left := q.limit
	for change, err := range client.History.Trash(cmd.Context(), query) {
		if err != nil {
			return err
		}
		if q.user != "" && change.User != q.user && change.Impersonator != q.user {
			continue
		}
		if err := what(change); err != nil {
			return err
		}
		if left--; left == 0 {
			break
		}
	}
	return nil
}

func (q *trashQuery) printList(cmd *cobra.Command, client *past.Client, query past.Query) error {
	list := changeList()
	err := q.each(cmd, client, query, func(change historyv1.Change) error {
		list.Items = append(list.Items, change)
		return nil
	})
	if err != nil {
		return err
	}
	return printAs(cmd.OutOrStdout(), q.output, list)
}

func (q *trashQuery) print(cmd *cobra.Command, s *screen, client *past.Client, query past.Query) error {
	titles := []string{"OBJECT", "KIND", "DELETED", "USER", "REVISION"}
	if q.allNamespaces {
		titles = append([]string{"NAMESPACE"}, titles...)
	}
	rows, any := newTable(s, titles...), false
	err := q.each(cmd, client, query, func(change historyv1.Change) error {
		any = true
		o := change.Object
		row := []cell{{bold, o.Resource + "/" + o.Name}, {plain, kindText(o)}, {plain, s.when(change.Time.Time)},
			{plain, past.Person(change.Description)}, {yellow, fmt.Sprint(change.Revision)}}
		if q.allNamespaces {
			row = append([]cell{{plain, orDash(o.Namespace)}}, row...)
		}
		return rows.add(row...)
	})
	if err != nil {
		return err
	}
	if !any {
		fmt.Fprintln(cmd.ErrOrStderr(), "The trash is empty.")
	}
	return tellKept(cmd, client, rows.flush())
}

// kindText names the kind of an object, which may be gone.
func kindText(o historyv1.ObjectReference) string {
	if o.Kind == "" {
		return "gone: " + schema.ParseGroupResource(o.Resource).Resource
	}
	return o.Kind
}
