package main

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plinth-io/plinth/cmd/plinth/past"
	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// beforeFollow is how many changes from before are shown, as tail shows lines.
const beforeFollow = 10

// tail prints the last changes and goes on with new ones.
func (q *logQuery) tail(cmd *cobra.Command, client *past.Client, query past.Query, one bool) error {
	if query.Limit == 0 {
		query.Limit = beforeFollow
	}
	newest := client.History.Newest
	if q.user != "" {
		newest = func(ctx context.Context, query past.Query) ([]historyv1.Change, string, error) {
			return client.History.NewestOf(ctx, query, q.user)
		}
	}
	before, version, err := newest(cmd.Context(), query)
	if err != nil {
		return err
	}
	t := &logTail{q: q, s: q.plainScreen(cmd.OutOrStdout()), one: one, cmd: cmd, client: client}
	t.rows = q.table(t.s, one)
	for _, change := range before {
		if err := t.show(nil, change); err != nil {
			return err
		}
	}
	if err := t.rows.flush(); err != nil {
		return err
	}
	if q.user != "" {
		err = client.History.FollowUser(cmd.Context(), query, q.user, version, t.show)
	} else {
		err = client.History.Follow(cmd.Context(), query, version, t.show)
	}
	if cmd.Context().Err() != nil {
		return nil // interrupted, which is how it ends
	}
	return err
}

// logTail prints changes as they come.
type logTail struct {
	q      *logQuery
	cmd    *cobra.Command
	client *past.Client
	s      *screen
	rows   *table
	one    bool
}

// show prints a change; one from before, which has no raw form, as soon as the others are there.
func (t *logTail) show(raw *unstructured.Unstructured, change historyv1.Change) error {
	switch {
	case t.q.noStatus && past.IsStatus(change):
		return nil
	case t.q.output == "json" && raw != nil:
		return printLine(t.s, raw)
	case t.q.output == "json":
		change.SetGroupVersionKind(historyv1.GroupVersion.WithKind("Change"))
		return printLine(t.s, change)
	case !t.q.diff:
		if err := t.rows.add(t.q.row(t.s, past.One(change), t.one)...); err != nil || raw == nil {
			return err
		}
		return t.rows.flush()
	}
	for entry, err := range t.client.History.WithDiffs(t.cmd.Context(), func(yield func(historyv1.Change, error) bool) { yield(change, nil) }, t.q.view) {
		if err != nil {
			return err
		}
		return t.q.printEntry(t.s, entry, t.one)
	}
	return nil
}
