package history

import (
	"context"
	"errors"
	"fmt"

	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	v1 "github.com/plinth-io/plinth/server/history/v1"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

const (
	walkStep   = 2000    // changes in one read
	firstStep  = 100     // changes in the first read if sizes are needed, for which some databases read the values
	mostLooked = 200_000 // the most changes that a page with a limit examines
	fruitful   = 20      // if fewer than one in so many rows is in the range of keys, the index is used
)

// walk reads changes of the log for one request.
type walk struct {
	*resources
	q      query
	kinds  kinds
	rights rights
	light  bool // values are not needed

	looked int
}

// walk returns a walk for the user in ctx.
func (r *resources) walk(ctx context.Context, q query) *walk {
	k := kindsOf(r.Kinds.Set())
	who, _ := apirequest.UserFrom(ctx) // without a user, nothing is allowed
	return &walk{resources: r, q: q, kinds: k, rights: rights{who: who, authorizer: r.Authorizer, kinds: k, store: r.Store}}
}

// visit is called with each change that was found. took is false if it is for the next page because this one
// is full.
type visit func(v *v1.Version, row *changelog.HistoryRow) (took bool, err error)

// newest visits the selected changes without data, the newest first and at most limit, and returns the
// revision below which the next page begins; 0 at the end. It may stop before limit, because the number of
// changes that a page examines is bounded.
func (w *walk) newest(ctx context.Context, limit int, take visit) (below int64, err error) {
	if w.q.none {
		return 0, nil
	}
	through, indexed, found, step := w.q.through, w.q.one, 0, w.step(limit)
	for {
		hq := changelog.HistoryQuery{After: w.q.after, Through: through, Sizes: w.sizes(), Limit: step}
		if indexed {
			hq.From, hq.To = w.q.from, w.q.to
		}
		rows, err := w.Store.History(ctx, hq)
		if err != nil {
			return 0, err
		}
		inRange := 0
		for i := range rows {
			v, in, err := w.visible(ctx, &rows[i])
			if err != nil {
				return 0, err
			}
			if in {
				inRange++
			}
			if v != nil {
				took, err := take(v, &rows[i])
				if err != nil {
					return 0, err
				}
				if !took {
					return rows[i].Revision + 1, nil
				}
				found++
			}
			if through = rows[i].Revision - 1; found == limit {
				return through + 1, nil
			}
		}
		if w.looked += len(rows); len(rows) < hq.Limit || through <= w.q.after {
			return 0, nil
		}
		if w.looked >= mostLooked {
			return through + 1, nil
		}
		indexed = indexed || w.q.from != "" && inRange*fruitful < len(rows)
		step = min(2*step, walkStep)
	}
}

// sizes reports whether values are read later, so that their sizes are needed now.
func (w *walk) sizes() bool { return w.form.values && !w.light }

func (w *walk) step(limit int) int {
	switch {
	case w.sizes():
		return min(firstStep, limit+1)
	case w.q.one:
		return min(walkStep, limit+1)
	}
	return walkStep
}

// visible makes a version without data of a row, or returns nil if the row is not selected or the caller may
// not see it.
func (w *walk) visible(ctx context.Context, row *changelog.HistoryRow) (v *v1.Version, inRange bool, err error) {
	if w.q.from != "" && (row.Key < w.q.from || row.Key >= w.q.to) {
		return nil, false, nil
	}
	p, ok := placeOf(row.Key)
	if !ok || w.q.namespaced && p.namespace != w.q.namespace {
		return nil, true, nil
	}
	d := w.kinds.describe(row, p, w.Store.Brought())
	if !w.q.rest.Empty() && !w.q.rest.Matches((*selectable)(&d)) {
		return nil, true, nil
	}
	if may, err := w.rights.maySee(ctx, p, row.Key, &d); !may || err != nil {
		return nil, true, err
	}
	return &d, true, nil
}

// state visits the selected objects as they were at a revision, in the order of their keys and without data.
// It returns the key at which the next page begins; empty: there is none. That key is right behind the last
// visited object, and is not the key of the next object, which the caller may not be allowed to see.
func (w *walk) state(ctx context.Context, from string, limit int, take visit) (next string, err error) {
	if w.q.none {
		return "", nil
	}
	start, to := w.q.from, w.q.to
	if start == "" {
		start, to = changelog.RangeOf(object.Root)
	}
	start = max(start, from)
	found, step := 0, min(firstStep, limit+1)
	for {
		rows, err := w.Store.Past(ctx, start, to, w.q.at, step)
		if errors.Is(err, changelog.ErrCompacted) && from == "" {
			err = notReached(fmt.Sprintf("revision %d", w.q.at))
		}
		if err != nil {
			return "", err
		}
		for i := range rows {
			start = rows[i].Key + "\x00"
			v, err := w.visibleState(ctx, &rows[i])
			if err != nil {
				return "", err
			}
			if v == nil {
				continue
			}
			if found == limit {
				return next, nil
			}
			if took, err := take(v, &rows[i]); err != nil || !took {
				return next, err
			}
			found, next = found+1, start
		}
		if len(rows) < step {
			return "", nil
		}
		step = min(2*step, walkStep)
	}
}

// visibleState is visible for an object of a state. It does not look up the author.
func (w *walk) visibleState(ctx context.Context, row *changelog.HistoryRow) (*v1.Version, error) {
	p, ok := placeOf(row.Key)
	if !ok || w.q.namespaced && p.namespace != w.q.namespace {
		return nil, nil
	}
	v := w.kinds.describe(row, p, w.Store.Brought())
	if !w.q.rest.Empty() && !w.q.rest.Matches((*selectable)(&v)) {
		return nil, nil
	}
	if may, err := w.rights.maySee(ctx, p, row.Key, &v); !may || err != nil {
		return nil, err
	}
	return &v, nil
}
