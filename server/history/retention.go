package history

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/warning"

	v1 "github.com/plinth-io/plinth/server/history/v1"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// warnOfEnd adds a warning to a list if the history does not reach as far back as the request asks: since
// when it is complete, why, and how to keep more. Missing history is not an error, so that the caller would
// not notice it otherwise.
func (r *resources) warnOfEnd(ctx context.Context, q *query) {
	if floor := r.Store.Floor(); q.none || q.after >= floor || q.at >= floor {
		return
	}
	reach, err := r.Store.Reach(ctx, object.ResourceOf(q.from))
	switch {
	case err != nil, reach.Since == 0: // the list itself returns the error of the database
	case q.after >= reach.Revision, q.at >= reach.Revision, reach.Revision <= r.Store.Brought()+1:
	default:
		what, resource := "versions", "*"
		if p, ok := placeOf(q.from); ok {
			what, resource = "versions of "+p.stored.String(), p.stored.String()
		}
		moment := time.UnixMilli(reach.Since).UTC().Format(time.RFC3339)
		warning.AddWarning(ctx, "", fmt.Sprintf("old %s from before %s are %s%s", what, moment, v1.NotKept, whyNotKept(&reach, resource)))
	}
}

// whyNotKept says how long old versions of a resource stay, and what to write for more; * stands for all
// resources.
func whyNotKept(r *sqlstore.Reach, resource string) string {
	switch {
	case r.Kept && r.Most > 0:
		return fmt.Sprintf(": they stay by the rule %s of --keep, as far as --keep-size (%s for all) has room", r.Rule, sizeText(r.Most))
	case r.Kept:
		return fmt.Sprintf(": they stay by the rule %s of --keep", r.Rule)
	case resource == "*" && len(r.Rules) > 0:
		return fmt.Sprintf(" but by the rules of --keep: %s", rulesText(r.Rules))
	}
	more := append(slices.DeleteFunc(r.Rules, func(rule changelog.Rule) bool { return rule.Resource == resource }),
		changelog.Rule{Resource: resource, For: 7 * 24 * time.Hour})
	if len(more) > mostRulesShown {
		return fmt.Sprintf(": they stay for %s (--history), and longer by a rule such as %s among those of --keep", r.History, more[len(more)-1])
	}
	return fmt.Sprintf(": they stay for %s (--history), and longer by a rule such as --keep '%s' of plinth serve", r.History, rulesText(more))
}

// mostRulesShown is how many rules a line has room for.
const mostRulesShown = 8

func rulesText(rules []changelog.Rule) string {
	texts := make([]string, len(rules))
	for i, r := range rules {
		texts[i] = r.String()
	}
	return strings.Join(texts, ",")
}

func sizeText(bytes int64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%dMiB", bytes>>20)
}
