package rest

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/storage"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// page is the part of a list that one response holds.
type page struct {
	revision int64
	// unversioned says that there is no revision, because the objects are not in the log.
	unversioned bool
	entries     []*sqlstore.Entry
	next        string // continue token; empty on the last page
	remaining   *int64
	shard       *metav1.ShardInfo // nil: the list is of all objects
}

// reader reads the objects of a target that are selected: for lists, for the deletion of
// collections and for the state that a watch begins with.
type reader struct {
	api    *API
	target *target
	sel    *selection
	// reaches returns an error for revisions that the caller may not read; see request.reaches.
	reaches func(ctx context.Context, revision int64) error
	// later says that entries beyond the first gatherBytes may be without values, which request.fetched reads
	// when they are written: a list takes no more memory than the state that it is of.
	later bool
	spare int // bytes of values that only this list has in memory
}

// reader returns a reader of the selected objects. later says that their values may be read when they are
// written. A webhook converts them all at once, so that it needs them before.
func (q *request) reader(sel *selection, later bool) reader {
	return reader{api: q.api, target: &q.target, sel: sel, reaches: q.reaches, later: later && q.kind.Conversion() == nil}
}

// sending is the context of what is read for an answer that is being sent. The time of the request does not end
// that by itself: after it, package guard cuts off the answers whose clients do not take what is sent.
func (q *request) sending() context.Context { return context.WithoutCancel(q.ctx) }

// gatherBytes bounds the values that a list has in memory only for itself.
const gatherBytes = 2 << 20

// gather returns what a page has of e until it is written.
func (r *reader) gather(view sqlstore.View, e *sqlstore.Entry) *sqlstore.Entry {
	if !r.later {
		return e
	}
	held := view.Hold(e)
	if held != e {
		if r.spare += len(e.Value); r.spare <= gatherBytes {
			return e
		}
	}
	return held
}

// fetched yields entries of a page with their values. The last pair may be an error.
func (q *request) fetched(ctx context.Context, entries []*sqlstore.Entry) iter.Seq2[*sqlstore.Entry, error] {
	return func(yield func(*sqlstore.Entry, error) bool) {
		fetch := q.fill
		if fetch == nil {
			fetch = q.api.store.Fetched
		}
		for e, err := range fetch(ctx, slices.Values(entries)) {
			if err == nil {
				err = q.unreadable(e)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// page finds the state that the options name and reads a page of it.
func (r *reader) page(ctx context.Context, o *metainternalversion.ListOptions) (page, error) {
	p, err := r.find(ctx, o)
	p.shard = r.sel.shardInfo()
	return p, r.target.unreadableList(err)
}

func (r *reader) find(ctx context.Context, o *metainternalversion.ListOptions) (page, error) {
	if o.Continue != "" {
		return r.continued(ctx, o)
	}
	view, err := r.viewFor(ctx, o)
	if err != nil {
		return page{}, err
	}
	limit := o.Limit
	if o.ResourceVersion == "0" && r.target.cached() {
		limit = 0
	}
	return r.first(ctx, view, limit)
}

// first reads the first page of a view.
func (r *reader) first(ctx context.Context, view sqlstore.View, limit int64) (page, error) {
	if r.sel.key != "" {
		return r.pick(ctx, view)
	}
	return r.scan(ctx, view, r.sel.prefix, limit)
}

// viewFor is the table of resourceVersion, resourceVersionMatch and limit at
// https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list
//
// A limit makes the version exact only if there may be another page, so not for one object.
func (r *reader) viewFor(ctx context.Context, o *metainternalversion.ListOptions) (sqlstore.View, error) {
	a := r.api
	rv, err := parseVersion(o.ResourceVersion)
	if err != nil {
		return nil, apierrors.NewBadRequest("invalid resource version: " + err.Error())
	}
	exact := o.ResourceVersionMatch == metav1.ResourceVersionMatchExact ||
		(o.ResourceVersionMatch == "" && o.Limit > 0 && r.sel.key == "")
	if !exact || rv == 0 {
		if err := a.fresh(ctx, o.ResourceVersion); err != nil {
			return nil, err
		}
		return a.store.Current(r.target.kind.Prefix()), nil
	}
	if err := a.await(ctx, rv); err != nil {
		return nil, err
	}
	if err := r.reaches(ctx, int64(rv)); err != nil {
		return nil, err
	}
	return a.store.At(ctx, r.target.kind.Prefix(), int64(rv))
}

// pick reads the one object that may be selected.
func (r *reader) pick(ctx context.Context, view sqlstore.View) (page, error) {
	p := page{revision: view.Revision()}
	e, err := view.Get(ctx, r.sel.key)
	if err != nil {
		return p, err
	}
	if err := r.target.unreadable(e); err != nil {
		return p, err
	}
	if e, err = r.converted(ctx, e); err != nil {
		return p, err
	}
	match, err := r.sel.matches(e)
	if match {
		p.entries = []*sqlstore.Entry{e}
	}
	return p, err
}

// continued reads the page that a token names. A token with revision -1 continues on the current
// state; clients get it with the error for an expired token.
func (r *reader) continued(ctx context.Context, o *metainternalversion.ListOptions) (page, error) {
	prefix := r.sel.prefix
	from, rv, err := storage.DecodeContinue(o.Continue, prefix)
	if err != nil {
		return page{}, apierrors.NewBadRequest("invalid continue token: " + err.Error())
	}
	if o.ResourceVersion != "" && o.ResourceVersion != "0" {
		return page{}, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	var view sqlstore.View
	if rv < 0 {
		if err := r.api.fresh(ctx, ""); err != nil {
			return page{}, err
		}
		view = r.api.store.Current(r.target.kind.Prefix())
	} else {
		if err := r.api.await(ctx, uint64(rv)); err != nil {
			return page{}, err
		}
		if err = r.reaches(ctx, rv); err == nil {
			view, err = r.api.store.At(ctx, r.target.kind.Prefix(), rv)
		}
		if err != nil {
			return page{}, expiredToken(err, from, prefix)
		}
	}
	p, err := r.scan(ctx, view, from, o.Limit)
	return p, expiredToken(err, from, prefix)
}

// expiredToken turns the error for a compacted revision into upstream's 410, which has a token to
// go on with the current state.
func expiredToken(err error, from, prefix string) error {
	if !errors.Is(err, changelog.ErrCompacted) {
		return err
	}
	expired := apierrors.NewResourceExpired("The provided continue parameter is too old " +
		"to display a consistent list result. You can start a new list without " +
		"the continue parameter, or use the continue token in this response to " +
		"retrieve the remainder of the results. Continuing with the provided " +
		"token results in an inconsistent list - objects that were created, " +
		"modified, or deleted between the time the first chunk was returned " +
		"and now may show up in the list.")
	if token, err := storage.EncodeContinue(from, prefix, -1); err == nil {
		expired.ErrStatus.ListMeta.Continue = token
	}
	return expired
}

// scan reads up to limit matching entries of a view in key order; limit 0 means all.
func (r *reader) scan(ctx context.Context, view sqlstore.View, from string, limit int64) (page, error) {
	sel := r.sel
	_, to := changelog.RangeOf(sel.prefix)
	p := page{revision: view.Revision()}
	if limit <= 0 {
		limit = math.MaxInt64
	}
	more, last := false, ""
	var failed error
	err := r.each(ctx, view, from, to, func(e *sqlstore.Entry) bool {
		if int64(len(p.entries)) == limit {
			more = true
			return false
		}
		last = e.Key
		match, err := sel.matches(e)
		if match {
			p.entries = append(p.entries, r.gather(view, e))
		}
		failed = err
		return err == nil
	})
	if err == nil {
		err = failed
	}
	if err != nil || !more {
		return p, err
	}
	return p, r.continueAfter(ctx, view, &p, last, to)
}

// continueAfter makes the token for the next page, and keeps the view in memory for it.
func (r *reader) continueAfter(ctx context.Context, view sqlstore.View, p *page, last, to string) error {
	next := last + "\x00"
	token, err := storage.EncodeContinue(next, r.sel.prefix, p.revision)
	if err != nil {
		return err
	}
	p.next = token
	if r.sel.everything() {
		n, err := view.Count(ctx, next, to)
		if err != nil {
			return err
		}
		p.remaining = &n
	}
	r.api.store.Keep(view)
	return nil
}

// converted returns an entry in a form that the selection can look into.
func (r *reader) converted(ctx context.Context, e *sqlstore.Entry) (*sqlstore.Entry, error) {
	if e == nil || !r.sel.looksInside() {
		return e, nil
	}
	return r.target.convertedEntry(ctx, e)
}

// convertedAt is how many objects are converted at a time while a list looks for the selected
// ones.
const convertedAt = 500

// each calls visit with the entries of a range, in a form that the selection can look into, until
// visit returns false.
func (r *reader) each(ctx context.Context, view sqlstore.View, from, to string, visit func(*sqlstore.Entry) bool) error {
	if !r.sel.looksInside() && r.later && len(r.sel.where) == 0 {
		return view.Outline(ctx, from, to, visit)
	}
	if r.target.kind.Conversion() == nil || !r.sel.looksInside() {
		return view.Select(ctx, from, to, r.sel.where, visit)
	}
	for {
		var some []*sqlstore.Entry
		err := view.Select(ctx, from, to, r.sel.where, func(e *sqlstore.Entry) bool {
			some = append(some, e)
			return len(some) < convertedAt
		})
		if err != nil {
			return err
		}
		full := len(some) == convertedAt
		if full {
			from = some[convertedAt-1].Key + "\x00"
		}
		if some, err = r.target.converted(ctx, some); err != nil {
			return err
		}
		for _, e := range some {
			if !visit(e) {
				return nil
			}
		}
		if !full {
			return nil
		}
	}
}
