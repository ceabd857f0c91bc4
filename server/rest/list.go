package rest

import (
	"context"
	stderrors "errors"
	"math"

	"k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metainternalversionvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/storage"

	"github.com/plinth-io/plinth/sqlstore"
)

// page is the part of a list that one response holds.
type page struct {
	revision int64
	// unversioned says that there is no revision, for objects that are not in the log.
	unversioned bool
	entries     []*sqlstore.Entry
	next        string // continue token; empty on the last page
	remaining   *int64
}

// list answers a collection, whole or by pages, from memory where it can.
func (q *request) list() error {
	if q.kind.Observed != nil {
		return q.listObserved()
	}
	options, sel, err := q.listOptions()
	if err != nil {
		return err
	}
	p, err := q.readPage(options, &sel)
	if err != nil {
		return err
	}
	return q.respondList(p)
}

// listOptions reads and checks the parameters that list, watch and deletecollection share.
func (q *request) listOptions() (*metainternalversion.ListOptions, selection, error) {
	options := &metainternalversion.ListOptions{}
	if values := q.values(); len(values) > 0 {
		if err := decodeOptions(values, options); err != nil {
			return nil, selection{}, err
		}
		if err := invalidOptions("ListOptions", metainternalversionvalidation.ValidateListOptions(options, true)); err != nil {
			return nil, selection{}, err
		}
	}
	if q.refused != nil {
		return nil, selection{}, q.refused
	}
	sel, err := q.newSelection(options.LabelSelector, options.FieldSelector)
	return options, sel, err
}

// readPage finds the state that the options name and reads a page of it.
func (q *request) readPage(o *metainternalversion.ListOptions, sel *selection) (page, error) {
	ctx := q.r.Context()
	if o.Continue != "" {
		return q.continuePage(ctx, o, sel)
	}
	view, err := q.viewFor(ctx, o, sel)
	if err != nil {
		return page{}, err
	}
	limit := o.Limit
	if o.ResourceVersion == "0" && q.cached() {
		limit = 0
	}
	return q.readFirst(ctx, view, limit, sel)
}

// readFirst reads the first page of a view.
func (q *request) readFirst(ctx context.Context, view sqlstore.View, limit int64, sel *selection) (page, error) {
	if sel.key != "" {
		return q.pick(ctx, view, sel)
	}
	return q.scan(ctx, view, sel.prefix, limit, sel)
}

// cached tells whether upstream answers lists that may be of any age from its watch cache,
// and then with all there is. It has none for events.
func (q *request) cached() bool { return q.kind.Resource != "events" }

// viewFor is the table of resourceVersion, resourceVersionMatch and limit at
// https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list
//
// A limit makes the version exact only where there may be another page: not for one object.
func (q *request) viewFor(ctx context.Context, o *metainternalversion.ListOptions, sel *selection) (sqlstore.View, error) {
	a := q.api
	rv, err := parseVersion(o.ResourceVersion)
	if err != nil {
		return nil, errors.NewBadRequest("invalid resource version: " + err.Error())
	}
	exact := o.ResourceVersionMatch == metav1.ResourceVersionMatchExact ||
		(o.ResourceVersionMatch == "" && o.Limit > 0 && sel.key == "")
	if !exact || rv == 0 {
		if err := a.fresh(ctx, o.ResourceVersion); err != nil {
			return nil, err
		}
		return a.store.Current(q.kind.Prefix()), nil
	}
	if err := a.await(ctx, rv); err != nil {
		return nil, err
	}
	return a.store.At(ctx, q.kind.Prefix(), int64(rv))
}

// pick reads the one object that may be selected.
func (q *request) pick(ctx context.Context, view sqlstore.View, sel *selection) (page, error) {
	p := page{revision: view.Revision()}
	e, err := view.Get(ctx, sel.key)
	if err != nil {
		return p, err
	}
	if e, err = q.convertedFor(sel, e); err != nil {
		return p, err
	}
	match, err := sel.matches(e)
	if match {
		p.entries = []*sqlstore.Entry{e}
	}
	return p, err
}

// continuePage reads on where a token says. A token with revision -1 continues on the
// current state: it was given with the error of one that had expired.
func (q *request) continuePage(ctx context.Context, o *metainternalversion.ListOptions, sel *selection) (page, error) {
	prefix := sel.prefix
	from, rv, err := storage.DecodeContinue(o.Continue, prefix)
	if err != nil {
		return page{}, errors.NewBadRequest("invalid continue token: " + err.Error())
	}
	if o.ResourceVersion != "" && o.ResourceVersion != "0" {
		return page{}, errors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	var view sqlstore.View
	if rv < 0 {
		if err := q.api.fresh(ctx, ""); err != nil {
			return page{}, err
		}
		view = q.api.store.Current(q.kind.Prefix())
	} else {
		if err := q.api.await(ctx, uint64(rv)); err != nil {
			return page{}, err
		}
		if view, err = q.api.store.At(ctx, q.kind.Prefix(), rv); err != nil {
			return page{}, expiredToken(err, from, prefix)
		}
	}
	p, err := q.scan(ctx, view, from, o.Limit, sel)
	return p, expiredToken(err, from, prefix)
}

// expiredToken turns a compacted revision into upstream's 410, which carries a token for
// going on with the current state.
func expiredToken(err error, from, prefix string) error {
	if !stderrors.Is(err, sqlstore.ErrCompacted) {
		return err
	}
	expired := errors.NewResourceExpired("The provided continue parameter is too old " +
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
func (q *request) scan(ctx context.Context, view sqlstore.View, from string, limit int64, sel *selection) (page, error) {
	_, to := sqlstore.RangeOf(sel.prefix)
	p := page{revision: view.Revision()}
	if limit <= 0 {
		limit = math.MaxInt64
	}
	more, last := false, ""
	var failed error
	err := q.each(ctx, view, sel, from, to, func(e *sqlstore.Entry) bool {
		if int64(len(p.entries)) == limit {
			more = true
			return false
		}
		last = e.Key
		match, err := sel.matches(e)
		if match {
			p.entries = append(p.entries, e)
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
	return p, q.continueAfter(ctx, view, &p, last, to, sel)
}

// continueAfter makes the token for the pages to come, and keeps their state at hand.
func (q *request) continueAfter(ctx context.Context, view sqlstore.View, p *page, last, to string, sel *selection) error {
	next := last + "\x00"
	token, err := storage.EncodeContinue(next, sel.prefix, p.revision)
	if err != nil {
		return err
	}
	p.next = token
	if sel.everything() {
		n, err := view.Count(ctx, next, to)
		if err != nil {
			return err
		}
		p.remaining = &n
	}
	q.api.store.Keep(view)
	return nil
}
