package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/plinth-io/plinth/cmd/plinth/past"
	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

const diffHelp = `Show what differs in an object between two moments, by default between the state before its last
change and now.

~1 is the state before the last change, ~2 that before the last two changes. Changes of the status
alone do not count. managedFields, resourceVersion and generation are left out.

Changes in list items are named by the merge keys of the list, and each item is compared with its
earlier state, even if it has moved.

-o json prints a description of both versions and a JSON merge patch from one to the other.`

// diffQuery is the command's flags.
type diffQuery struct {
	historyFlags
	from, to, output string
	view             past.View
}

func newDiff() *cobra.Command {
	var q diffQuery
	cmd := &cobra.Command{
		Use:   "diff TYPE/NAME",
		Short: "Show what differs in an object between two moments",
		Long:  diffHelp,
		Example: `  plinth diff deployments/web -n shop
  plinth diff deployments/web -n shop --from 2h
  plinth diff deployments/web -n shop --from 12345 --to 12399`,
		ValidArgsFunction: q.completeObjects,
		RunE:              q.run,
	}
	q.add(cmd, false,
		fromFlag(text(&q.from, "~1"), "`moment` of the old state: 2h, 3d, 14:00, \"2006-01-02 15:04\", a revision, or ~2 for two changes back", moments),
		toFlag(text(&q.to, "now"), "`moment` of the new state", moments),
		showManagedFlag(&q.view.All, showManagedHelp),
		outputFlag(&q.output, outputHelp, "json", "yaml"),
	)
	return cmd
}

func (q *diffQuery) run(cmd *cobra.Command, args []string) error {
	if err := checkOutput(q.output); err != nil {
		return err
	}
	from, to, err := momentsOf("from", q.from, "to", q.to)
	if err != nil {
		return err
	}
	client, target, err := q.object(cmd, args, true)
	if err != nil {
		return err
	}
	d, err := client.History.Compare(cmd.Context(), target, from, to, q.view)
	if err != nil {
		return err
	}
	if q.output != "" {
		return q.printPatch(cmd, d)
	}
	return q.show(cmd, func(s *screen) error {
		if len(d.Lines) == 0 {
			fmt.Fprintln(cmd.ErrOrStderr(), "No difference.")
			return nil
		}
		fmt.Fprintln(s, s.paint(bold, "--- "+sideOf(target, d.From)))
		fmt.Fprintln(s, s.paint(bold, "+++ "+sideOf(target, d.To)))
		return s.diff(d.Lines)
	})
}

// sideOf describes one side of a diff.
func sideOf(t past.Target, v *historyv1.Version) string {
	if v == nil {
		return t.String() + ", which was not there"
	}
	return fmt.Sprintf("%s at revision %d, %s, by %s", t, v.Revision, v.Time.UTC().Format(time.RFC3339), past.Person(v.Description))
}

// printPatch prints the difference for programs.
func (q *diffQuery) printPatch(cmd *cobra.Command, d *past.Difference) error {
	from, err := q.side(d.From)
	if err != nil {
		return err
	}
	to, err := q.side(d.To)
	if err != nil {
		return err
	}
	patch, err := jsonpatch.CreateMergePatch(from, to)
	if err != nil {
		return err
	}
	return printAs(cmd.OutOrStdout(), q.output, struct {
		From       *historyv1.Description `json:"from"`
		To         *historyv1.Description `json:"to"`
		MergePatch json.RawMessage        `json:"mergePatch"`
	}{descriptionOf(d.From), descriptionOf(d.To), patch})
}

func descriptionOf(v *historyv1.Version) *historyv1.Description {
	if v == nil {
		return nil
	}
	return &v.Description
}

// side returns what is compared of a version.
func (q *diffQuery) side(v *historyv1.Version) ([]byte, error) {
	if v == nil {
		return []byte("{}"), nil
	}
	object, err := past.Object(v)
	if err != nil {
		return nil, err
	}
	return json.Marshal(q.view.Content(object))
}
