package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// newHistoryCommands returns the commands that read and bring back the past. They need no more than a
// kubeconfig, so they are those of kubectl plinth too.
func newHistoryCommands() []*cobra.Command {
	all := []*cobra.Command{newLog(), newGetAt(), newDiff(), newBlame(), newUndo(), newTrash(), newUndelete(), newForget()}
	for _, cmd := range all {
		run := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return aboutMoment(cmd, run(cmd, args)) }
	}
	return all
}

// aboutMoment names the flag of a revision that only the server knew to be in the future.
func aboutMoment(cmd *cobra.Command, err error) error {
	var future *past.FutureRevisionError
	if !errors.As(err, &future) {
		return err
	}
	for _, name := range []string{"at", "from", "to", "since", "until"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Value.String() == future.Revision {
			return usagef("--%s: %v", name, future)
		}
	}
	return usagef("%v", future)
}

// historyFlags are the flags of all these commands, named as kubectl's are.
type historyFlags struct {
	clientFlags
	namespace     string
	allNamespaces bool
	color         string
	noPager       bool
}

// add gives a command its own flags, then these. With all it can look at all namespaces at once.
func (q *historyFlags) add(cmd *cobra.Command, all bool, own ...Flag) {
	namespace := namespaceFlag(&q.namespace, "`namespace` of the objects; by default that of the context")
	namespace.Short, namespace.Complete = "n", q.completeNamespaces
	flags := append(own, namespace)
	if all {
		flags = append(flags, Flag{Name: "all-namespaces", Short: "A", Set: boolean(&q.allNamespaces, false),
			Help: "look at all namespaces, and at objects without a namespace"})
	}
	addInOrder(cmd, append(append(flags, q.clientFlags.flags()...),
		Flag{Name: "color", Set: text(&q.color, "auto"), Complete: values("auto", "always", "never"),
			Help: "`when` to use colours: auto for a terminal, unless NO_COLOR is set; always, or never"},
		Flag{Name: "no-pager", Set: boolean(&q.noPager, false),
			Help: "do not show long output in the program that PLINTH_PAGER or PAGER names, or less"},
	)...)
}

// client returns a client and the namespace that the user means.
func (q *historyFlags) client(cmd *cobra.Command) (*past.Client, string, error) {
	if err := q.check(); err != nil {
		return nil, "", err
	}
	loader := q.loader(cmd, q.namespace)
	config, err := q.config(cmd, loader)
	if err != nil {
		return nil, "", err
	}
	var distrust func(error) error
	if asked := askedBy(config); asked != nil {
		distrust = asked.distrust
	}
	client, err := past.New(config, distrust)
	if err != nil {
		return nil, "", err
	}
	namespace, _, err := loader.Namespace()
	if q.allNamespaces {
		namespace = ""
	}
	return client, namespace, err
}

func (q *historyFlags) check() error {
	switch q.color {
	case "auto", "always", "never":
	default:
		return usagef("--color: %q: write auto, always or never", q.color)
	}
	if q.allNamespaces && q.namespace != "" {
		return usagef("--all-namespaces and --namespace: write only one of them")
	}
	return nil
}

// object returns a client and the object that the arguments name. Its kind may be gone, if past is set.
func (q *historyFlags) object(cmd *cobra.Command, args []string, gone bool) (*past.Client, past.Target, error) {
	word, err := oneObject(cmd, args)
	if err != nil {
		return nil, past.Target{}, err
	}
	client, namespace, err := q.client(cmd)
	if err != nil {
		return nil, past.Target{}, err
	}
	kind, err := findKind(cmd, client, word.Type, gone)
	return client, kind.In(namespace, word.Name), err
}

// oneObject reads the arguments of a command for one object.
func oneObject(cmd *cobra.Command, args []string) (past.Words, error) {
	words, err := past.SplitWords(args)
	if err != nil {
		return past.Words{}, err
	}
	if len(words) != 1 || words[0].Name == "" {
		return past.Words{}, usagef("write one object, such as %s deployments/web", cmd.CommandPath())
	}
	return words[0], nil
}

func findKind(cmd *cobra.Command, client *past.Client, text string, gone bool) (past.Kind, error) {
	if gone {
		return client.History.FindPastKind(cmd.Context(), text)
	}
	return client.Kinds.Find(text)
}

// momentOf reads a flag with a moment, which may be empty.
func momentOf(flag, text string) (past.Moment, error) {
	if text == "" {
		return past.Moment{}, nil
	}
	return past.ParseMoment(flag, text, time.Now())
}

// momentsOf reads two flags with moments.
func momentsOf(flag1, text1, flag2, text2 string) (a, b past.Moment, err error) {
	if a, err = momentOf(flag1, text1); err != nil {
		return a, b, err
	}
	b, err = momentOf(flag2, text2)
	return a, b, err
}

// ask is how completions ask a server: not for long.
func ask(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	return context.WithTimeout(ctx, 3*time.Second)
}
