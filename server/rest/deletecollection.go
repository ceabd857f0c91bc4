package rest

import (
	"context"
	"net/http"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// deleteWorkers is how many deletions of a collection are under way at once: enough to
// fill the store's batches.
const deleteWorkers = 64

// deleteCollection deletes the objects that a list with the same parameters returns, each as
// delete does, and answers with that list. It is not atomic; neither is upstream's.
func (q *request) deleteCollection() error {
	listOptions, sel, err := q.listOptions()
	if err != nil {
		return err
	}
	options, err := q.deleteOptions()
	if err == nil {
		err = refuseUnsafe(options)
	}
	if err != nil {
		return err
	}
	if q.kind.Observed != nil {
		return q.deleteObserved(listOptions, options)
	}
	read := q.reader(&sel, false)
	p, err := read.page(q.ctx, listOptions)
	if err != nil {
		return err
	}
	ctx := q.rulesContext()
	if err := q.beforeDelete(ctx, "", options); err != nil {
		return err
	}
	if p.entries, err = q.converted(q.ctx, p.entries); err != nil {
		return err
	}
	if err := removeAll(ctx, q, p.entries, options); err != nil {
		return err
	}
	return q.respondList(p)
}

// DeleteAll deletes all objects of a Kind whose definition is being deleted; those with
// finalizers are marked. The Kind need not be in the registry. As in upstream, admission is not
// asked. The first error ends it.
func (a *API) DeleteAll(ctx context.Context, k *kind.Kind) error {
	if _, err := a.store.Sync(ctx); err != nil {
		return err
	}
	var entries []*sqlstore.Entry
	from, to := changelog.RangeOf(k.Prefix())
	err := a.store.Current(k.Prefix()).Scan(ctx, from, to, func(e *sqlstore.Entry) bool {
		entries = append(entries, e)
		return true
	})
	if err != nil || len(entries) == 0 {
		return err
	}
	version := k.Versions[0].Name
	info := &apirequest.RequestInfo{Verb: "deletecollection", APIGroup: k.Group, APIVersion: version, Resource: k.Resource}
	who := &user.DefaultInfo{Name: user.APIServerUser, Groups: []string{user.SystemPrivilegedGroup}}
	own := Own
	own.Verb = info.Verb
	ctx = sqlstore.WithOrigin(ctx, &changelog.Origin{Author: own})
	q := &request{
		call:   &call{api: a, ctx: ctx, info: info, who: who, warn: response.NewWarnings(http.Header{})},
		target: target{kind: k, version: version},
	}
	return removeAll(q.rulesContext(), q, entries, &metav1.DeleteOptions{})
}

// removeAll deletes the objects in their order, several at once. After an error it begins no
// further deletion; it returns the error of the first object in that order that has one.
func removeAll(ctx context.Context, q *request, entries []*sqlstore.Entry, options *metav1.DeleteOptions) error {
	var (
		group  errgroup.Group
		failed atomic.Bool
		errs   = make([]error, len(entries))
	)
	group.SetLimit(deleteWorkers)
	for i, e := range entries {
		if failed.Load() {
			break
		}
		group.Go(func() error {
			if errs[i] = removeListed(ctx, q, e, options); errs[i] != nil {
				failed.Store(true)
			}
			return nil
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// removeListed deletes one object of the list. It is no error if another deletion was faster.
// Admission gets no name, because the request has none.
func removeListed(ctx context.Context, q *request, e *sqlstore.Entry, options *metav1.DeleteOptions) error {
	_, err := q.at(q.kind.SplitKey(e.Key)).remove(ctx, "", options)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
