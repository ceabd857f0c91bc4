package history

import (
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/plinth-io/plinth/server/history/v1"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// gather is how long changes are collected before the log is read: unlike other watches, a watch of history
// queries the database.
const gather = 100 * time.Millisecond

// events has the changes that a watch sends.
type events struct {
	*walk
	kind    func() *kind.Kind
	wake    chan struct{}
	through atomic.Int64 // all changes up to this revision were sent
	rows    int          // how many Poll reads next, if it sends values
	end     context.CancelFunc
	gone    chan struct{} // closed when the goroutine has ended
}

// Follow implements kind.Follower. Changes come with the type ADDED.
func (r *resources) Follow(ctx context.Context, after int64, o *metainternalversion.ListOptions) (kind.Events, error) {
	q, err := r.parse(ctx, o)
	if err != nil {
		return nil, err
	}
	if o != nil && o.SendInitialEvents != nil && *o.SendInitialEvents {
		// This is upstream's answer without WatchList (apimachinery: validation of ListOptions), after which
		// clients list.
		path := field.NewPath("sendInitialEvents")
		return nil, apierrors.NewInvalid(metainternalversion.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "",
			field.ErrorList{field.Forbidden(path, "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")})
	}
	if q.at != 0 {
		return nil, apierrors.NewBadRequest(v1.FieldAt + " selects a state, which does not change: list it, or watch without it")
	}
	if after < r.Store.Floor() {
		return nil, changelog.ErrCompacted
	}
	e := &events{walk: r.walk(ctx, q), wake: make(chan struct{}), gone: make(chan struct{}), rows: firstRows}
	e.kind = r.served
	e.through.Store(max(after, q.after))
	ctx, e.end = context.WithCancel(ctx)
	go e.follow(ctx)
	return e, nil
}

// follow wakes the watch when there are changes, until ctx ends or the Store is closed.
func (e *events) follow(ctx context.Context) {
	defer close(e.gone)
	for {
		if e.Store.Wait(ctx, e.through.Load()+1) != nil {
			return
		}
		t := time.NewTimer(gather)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
		select {
		case e.wake <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}

// Wait implements kind.Events.
func (e *events) Wait() <-chan struct{} { return e.wake }

// Poll implements kind.Events. It returns changes with at most partBytes of data, or one.
func (e *events) Poll(ctx context.Context) (found []*sqlstore.Event, through int64, err error) {
	through = e.through.Load()
	last := e.Store.Revision()
	limit := walkStep
	if e.form.values {
		limit = e.rows
	}
	rows, err := e.Store.History(ctx, changelog.HistoryQuery{After: through, Through: last, Oldest: true, Sizes: e.form.values, Limit: limit})
	if err != nil {
		return nil, through, err
	}
	if through < e.Store.Floor() {
		return nil, through, changelog.ErrCompacted
	}
	if len(rows) == limit {
		last = rows[len(rows)-1].Revision
	}
	k, size, cut := e.kind(), 0, false
	e.rights.known = nil // rights may change while the watch runs
	for i := range rows {
		v, _, err := e.visible(ctx, &rows[i])
		if err != nil {
			return nil, through, err
		}
		if v == nil || e.q.none || v.Revision > e.q.through {
			continue
		}
		if size += int(rows[i].Size); len(found) > 0 && size > partBytes {
			last, cut = v.Revision-1, true
			break
		}
		if err := e.addData(ctx, v, &rows[i]); err != nil {
			return nil, through, err
		}
		entry, err := k.Entry(e.form.one(v))
		if err != nil {
			return nil, through, err
		}
		found = append(found, &sqlstore.Event{Entry: entry})
	}
	e.rows = nextRows(e.rows, len(found), cut)
	e.through.Store(last)
	return found, last, nil
}

// firstRows is how many changes a watch of versions reads at first.
const firstRows = 8

// nextRows returns how many changes a watch reads next. rows is how many it has read, and sent is how many
// values it has sent; cut says that it sent only some, because they are large. MariaDB and MySQL read a whole
// value to find its size, so reading many more rows than are sent would read each large value again and
// again.
func nextRows(rows, sent int, cut bool) int {
	if cut {
		return max(1, min(rows, sent+1))
	}
	return min(2*rows, partRows)
}

// Close implements kind.Events.
func (e *events) Close() {
	e.end()
	<-e.gone
}
