package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

func (q *historyFlags) completeNamespaces(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return beginning(q.namesOf(cmd, "namespaces"), begun), cobra.ShellCompDirectiveNoFileComp
}

// moments are what flags are completed with that take a time.
var moments = values("10m", "1h", "1d", "7d")

func beginning(words []string, begun string) []string {
	return slices.DeleteFunc(words, func(word string) bool { return !strings.HasPrefix(word, begun) })
}

// namesOf returns the names of the objects of a type, nothing if they cannot be known.
func (q *historyFlags) namesOf(cmd *cobra.Command, kind string) []string {
	client, namespace, err := q.client(cmd)
	if err != nil {
		return nil
	}
	ctx, cancel := ask(cmd)
	defer cancel()
	names, err := client.Kinds.Names(ctx, kind, namespace)
	if err != nil {
		return nil
	}
	return names
}

// completeTypes completes the type in the first argument.
func (q *historyFlags) completeTypes(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return beginning(q.types(cmd), begun), cobra.ShellCompDirectiveNoFileComp
}

func (q *historyFlags) types(cmd *cobra.Command) []string {
	client, _, err := q.client(cmd)
	if err != nil {
		return nil
	}
	names, err := client.Kinds.Served()
	if err != nil {
		return nil
	}
	return names
}

// completeObjects completes TYPE/NAME and TYPE NAME.
func (q *historyFlags) completeObjects(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	return q.completeNames(cmd, args, begun, func(kind string) []string { return q.namesOf(cmd, kind) })
}

// completeTrash is completeObjects for objects that were deleted.
func (q *historyFlags) completeTrash(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	return q.completeNames(cmd, args, begun, func(kind string) (names []string) {
		client, namespace, err := q.client(cmd)
		if err != nil {
			return nil
		}
		ctx, cancel := ask(cmd)
		defer cancel()
		found, err := client.Kinds.Find(kind)
		if err != nil {
			return nil
		}
		for change, err := range client.History.Trash(ctx, past.Query{}.ToObject(found.In(namespace, ""))) {
			if err != nil {
				break
			}
			names = append(names, change.Object.Name)
		}
		return names
	})
}

func (q *historyFlags) completeNames(cmd *cobra.Command, args []string, begun string, names func(kind string) []string) ([]string, cobra.ShellCompDirective) {
	kind, name, joined := strings.Cut(begun, "/")
	switch {
	case joined:
		found := beginning(names(kind), name)
		for i := range found {
			found[i] = kind + "/" + found[i]
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	case len(args) > 0 && !strings.Contains(args[0], "/"):
		return beginning(names(args[0]), begun), cobra.ShellCompDirectiveNoFileComp
	}
	types := beginning(q.types(cmd), begun)
	if len(types) == 1 {
		types[0] += "/"
		return types, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	return types, cobra.ShellCompDirectiveNoFileComp
}
