package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plinth-io/plinth/cmd/plinth/past"
	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

const getHelp = `Show objects as they were at a moment: one object, or all of a type.

-o yaml and json print the objects as they were stored, with the resourceVersion from then. Without
them there is a line for each object, with its last change before the moment.`

// getQuery is the command's flags.
type getQuery struct {
	historyFlags
	at, output  string
	showManaged bool
}

func newGetAt() *cobra.Command {
	var q getQuery
	cmd := &cobra.Command{
		Use:   "get TYPE[,TYPE...] [NAME] --at MOMENT",
		Short: "Show objects as they were",
		Long:  getHelp,
		Example: `  plinth get deployments/web -n shop --at 2h -o yaml
  plinth get configmaps -n shop --at "2006-01-02 15:04"
  plinth get nodes --at 12345 -o json`,
		ValidArgsFunction: q.completeObjects,
		RunE:              q.run,
	}
	q.add(cmd, true,
		atFlag(&q.at, "`moment`: 2h, 3d, 14:00, \"2006-01-02 15:04\", a revision, or of one object ~2 for two changes back"),
		outputFlag(&q.output, "`format` to print in: yaml, json, name, or wide for a table with the author of each object, which takes a request for each; by default a table", "yaml", "json", "name", "wide"),
		showManagedFlag(&q.showManaged, "print managedFields too"),
	)
	return cmd
}

func (q *getQuery) run(cmd *cobra.Command, args []string) error {
	switch q.output {
	case "", "yaml", "json", "name", "wide":
	default:
		return usagef("--output: %q: write yaml, json, name or wide, or leave it out for a table", q.output)
	}
	if q.at == "" {
		return usagef("--at is missing: write --at 2h, --at 14:00 or --at REVISION; for what is there now use kubectl get")
	}
	at, err := momentOf("at", q.at)
	if err != nil {
		return err
	}
	words, err := past.SplitWords(args)
	if err != nil {
		return err
	}
	if len(words) == 0 {
		return usagef("write a type, such as %s deployments --at 2h", cmd.CommandPath())
	}
	if q.allNamespaces && words[0].Name != "" {
		return usagef("an object cannot be named across all namespaces: write its --namespace")
	}
	client, namespace, err := q.client(cmd)
	if err != nil {
		return err
	}
	if words[0].Name != "" {
		return q.getNamed(cmd, client, namespace, words, at)
	}
	kinds, err := client.History.FindPastKinds(cmd.Context(), words[0].Type)
	if err != nil {
		return err
	}
	var found []ofKind
	for _, kind := range kinds {
		all, err := client.History.AllAt(cmd.Context(), kind.In(namespace, ""), at)
		if err == nil && len(all) == 0 && len(kinds) == 1 {
			err = client.History.MayGet(cmd.Context(), kind.In(namespace, ""))
		}
		if err != nil {
			return err
		}
		found = append(found, ofKind{kind, all})
	}
	return q.show(cmd, func(s *screen) error { return q.print(cmd, client, s, found, 0) })
}

// ofKind are objects of one type.
type ofKind struct {
	past.Kind
	objects []historyv1.Version
}

// getNamed shows objects that must have been there, of one type.
func (q *getQuery) getNamed(cmd *cobra.Command, client *past.Client, namespace string, words []past.Words, at past.Moment) error {
	var all []historyv1.Version
	kind, err := client.History.FindPastKind(cmd.Context(), words[0].Type)
	if err != nil {
		return err
	}
	for _, word := range words {
		if word.Type != words[0].Type {
			return usagef("%s/%s: write one type at a time", word.Type, word.Name)
		}
		v, err := client.History.MustBeAt(cmd.Context(), kind.In(namespace, word.Name), at)
		if err == nil {
			err = client.History.AddMaker(cmd.Context(), v)
		}
		if err != nil {
			return err
		}
		all = append(all, *v)
	}
	return q.show(cmd, func(s *screen) error { return q.print(cmd, client, s, []ofKind{{kind, all}}, len(words)) })
}

func (q *getQuery) print(cmd *cobra.Command, client *past.Client, s *screen, found []ofKind, names int) error {
	var all []historyv1.Version
	for _, of := range found {
		all = append(all, of.objects...)
	}
	switch {
	case q.output == "yaml" || q.output == "json":
		return q.printObjects(s, all, names == 1)
	case q.output == "name":
		for _, v := range all {
			fmt.Fprintln(s, s.paint(plain, v.Object.Resource+"/"+v.Object.Name))
		}
		return nil
	case len(all) == 0:
		fmt.Fprintln(cmd.ErrOrStderr(), "No resources found at that time.")
		return nil
	}
	if q.output == "wide" && names == 0 {
		for _, of := range found {
			for i := range of.objects {
				if err := client.History.AddMaker(cmd.Context(), &of.objects[i]); err != nil {
					return err
				}
			}
		}
	}
	return q.printTables(s, found, names > 0 || q.output == "wide")
}

// printTables prints a table for each type. If there are several types, names have them, as kubectl does.
func (q *getQuery) printTables(s *screen, found []ofKind, named bool) error {
	several := len(found) > 1
	found = slices.DeleteFunc(found, func(of ofKind) bool { return len(of.objects) == 0 })
	for i, of := range found {
		if i > 0 {
			fmt.Fprintln(s)
		}
		rows := q.table(s, of.Kind, named)
		for _, v := range of.objects {
			if several {
				v.Object.Name = v.Object.Resource + "/" + v.Object.Name
			}
			if err := rows.add(q.row(s, of.Kind, v, named)...); err != nil {
				return err
			}
		}
		if err := rows.flush(); err != nil {
			return err
		}
	}
	return nil
}

// table returns a table of versions. Who made them is known of those that were named.
func (q *getQuery) table(s *screen, kind past.Kind, named bool) *table {
	titles := []string{"NAME", "REVISION", "CHANGED"}
	if named {
		titles = append(titles, "USER", "MANAGER")
	}
	if q.allNamespaces && kind.Namespaced {
		titles = append([]string{"NAMESPACE"}, titles...)
	}
	return newTable(s, titles...)
}

func (q *getQuery) row(s *screen, kind past.Kind, v historyv1.Version, named bool) []cell {
	row := []cell{{bold, v.Object.Name}, {yellow, fmt.Sprint(v.Revision)}, {plain, s.when(v.Time.Time)}}
	if named {
		row = append(row, cell{plain, past.Person(v.Description)}, cell{plain, past.Manager(v.Description)})
	}
	if q.allNamespaces && kind.Namespaced {
		row = append([]cell{{plain, v.Object.Namespace}}, row...)
	}
	return row
}

// printObjects prints one object as such, or a list as kubectl does.
func (q *getQuery) printObjects(s *screen, all []historyv1.Version, one bool) error {
	objects := []any{}
	for i := range all {
		object, err := past.Object(&all[i])
		if err != nil {
			return err
		}
		if !q.showManaged {
			object.SetManagedFields(nil)
		}
		objects = append(objects, object.Object)
	}
	if one {
		return printAs(s.text(), q.output, objects[0])
	}
	list := unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "List", "items": objects}}
	return printAs(s.text(), q.output, list.Object)
}
