package history

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/warning"

	v1 "github.com/plinth-io/plinth/server/history/v1"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// warnOfEnd adds a warning to a list if the history does not reach as far back as the request asks: since
// when it is complete, why, and how to keep more. Missing history is not an error, so that the caller would
// not notice it otherwise.
func (r *resources) warnOfEnd(ctx context.Context, q *query) {
	floor := r.Store.Floor()
	if q.none || q.after >= floor || q.at >= floor || floor <= r.Store.Brought()+1 {
		return
	}
	prefix := object.ResourceOf(q.from)
	since, history, rule, kept, err := r.Store.Reach(ctx, prefix)
	if err != nil || since == 0 {
		return // the list itself returns the error of the database
	}
	what, example := "versions", "*"
	if p, ok := placeOf(q.from); ok {
		what, example = "versions of "+p.stored.String(), p.stored.String()
	}
	moment := time.UnixMilli(since).UTC().Format(time.RFC3339)
	if kept {
		warning.AddWarning(ctx, "", fmt.Sprintf("old %s from before %s are %s but by the rule %s of --keep", what, moment, v1.NotKept, rule))
		return
	}
	warning.AddWarning(ctx, "", fmt.Sprintf("old %s from before %s are %s: they stay for %s (--history), and longer by a rule such as --keep '%s=7d' of plinth serve",
		what, moment, v1.NotKept, history, example))
}
