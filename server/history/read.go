package history

import (
	"context"
	"errors"
	"fmt"

	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	v1 "github.com/plinth-io/plinth/server/history/v1"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

const (
	walkStep   = 2000    // changes read at once
	valueStep  = 100     // the same with values
	stepBytes  = 4 << 20 // of values that are read at once, about
	mostLooked = 200_000 // changes that one page with a limit looks at
	fruitful   = 20      // one of so many must be in the range of keys, or else its index is used
)

// walk reads changes of the log for one request.
type walk struct {
	*resources
	q      query
	kinds  kinds
	rights rights

	looked int
}

// walk begins a walk for the user in ctx.
func (r *resources) walk(ctx context.Context, q query) *walk {
	k := kindsOf(r.Kinds.Set())
	who, _ := apirequest.UserFrom(ctx) // without one nothing is allowed
	return &walk{resources: r, q: q, kinds: k, rights: rights{who: who, authorizer: r.Authorizer, kinds: k, store: r.Store}}
}

// newest returns the selected changes, the newest first, and where to go on: below a revision, which is
// 0 at the end. There may be fewer than limit without an end: a page is bounded in what it looks at.
func (w *walk) newest(ctx context.Context, limit int) (found []v1.Version, below int64, err error) {
	if w.q.none {
		return nil, 0, nil
	}
	through, indexed := w.q.through, w.q.one
	for {
		hq := sqlstore.HistoryQuery{After: w.q.after, Through: through, Values: w.form.values, Limit: w.step(limit)}
		if indexed {
			hq.From, hq.To = w.q.from, w.q.to
		}
		rows, err := w.Store.History(ctx, hq)
		if err != nil {
			return nil, 0, err
		}
		inRange := 0
		for i := range rows {
			v, in, err := w.look(ctx, &rows[i])
			if err != nil {
				return nil, 0, err
			}
			if in {
				inRange++
			}
			through = rows[i].Revision - 1
			if v == nil {
				continue
			}
			if found = append(found, *v); len(found) == limit {
				return found, through + 1, nil
			}
		}
		if w.looked += len(rows); len(rows) < hq.Limit || through <= w.q.after {
			return found, 0, nil
		}
		if w.looked >= mostLooked {
			return found, through + 1, nil
		}
		indexed = indexed || w.q.from != "" && inRange*fruitful < len(rows)
	}
}

func (w *walk) step(limit int) int {
	switch {
	case w.form.values:
		return min(valueStep, limit+1)
	case w.q.one:
		return min(walkStep, limit+1)
	}
	return walkStep
}

// look makes a version of a row that is selected and that the caller may see; nil of others.
func (w *walk) look(ctx context.Context, row *sqlstore.HistoryRow) (v *v1.Version, inRange bool, err error) {
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
	if w.form.values {
		setData(&d, w.Store.HistoryEntry(ctx, &row.Row))
	}
	return &d, true, nil
}

// state returns the selected objects as they were at a revision, in the order of their keys, and the key
// to go on with, which is empty at the end. That is behind the last object found and not the next one: the
// caller may not know that one.
func (w *walk) state(ctx context.Context, from string, limit int) (found []v1.Version, next string, err error) {
	if w.q.none {
		return nil, "", nil
	}
	start, to := w.q.from, w.q.to
	if start == "" {
		start, to = sqlstore.RangeOf(object.Root)
	}
	start = max(start, from)
	step := min(valueStep, limit+1)
	for {
		entries, err := w.Store.Past(ctx, start, to, w.q.at, step)
		if errors.Is(err, sqlstore.ErrCompacted) && from == "" {
			err = notReached(fmt.Sprintf("revision %d", w.q.at))
		}
		if err != nil {
			return nil, "", err
		}
		for _, e := range entries {
			start = e.Key + "\x00"
			v, err := w.lookAt(ctx, e)
			switch {
			case err != nil:
				return nil, "", err
			case v == nil:
			case len(found) == limit:
				return found, next, nil
			default:
				found, next = append(found, *v), start
			}
		}
		if len(entries) < step {
			return found, "", nil
		}
		step = nextStep(entries)
	}
}

// nextStep returns how many objects are read at once after these, by their size.
func nextStep(entries []*sqlstore.Entry) int {
	size := 0
	for _, e := range entries {
		size += len(e.Value)
	}
	return min(max(stepBytes*len(entries)/max(size, 1), 1), walkStep)
}

// lookAt is look for an object of a state. Who has made it is not looked up.
func (w *walk) lookAt(ctx context.Context, e *sqlstore.Entry) (*v1.Version, error) {
	p, ok := placeOf(e.Key)
	if !ok || w.q.namespaced && p.namespace != w.q.namespace {
		return nil, nil
	}
	row := sqlstore.Row{Revision: e.Revision, Key: e.Key, CreateRevision: e.CreateRevision, At: e.At}
	v := w.kinds.describe(&sqlstore.HistoryRow{Row: row}, p, w.Store.Brought())
	if !w.q.rest.Empty() && !w.q.rest.Matches((*selectable)(&v)) {
		return nil, nil
	}
	if may, err := w.rights.maySee(ctx, p, e.Key, &v); !may || err != nil {
		return nil, err
	}
	setData(&v, e)
	return &v, nil
}
