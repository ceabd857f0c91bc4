package rest

import (
	"context"
	"net/http"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore"
)

// deleteWorkers is how many deletions of a collection are under way at once: enough to
// fill the store's batches.
const deleteWorkers = 64

// deleteCollection deletes what a list with the same parameters returns, each object as
// delete would, and answers with that list. As upstream's it is not atomic.
func (q *request) deleteCollection() error {
	listOptions, sel, err := q.listOptions()
	if err != nil {
		return err
	}
	options, err := q.deleteOptions()
	if err != nil {
		return err
	}
	p, err := q.readPage(listOptions, &sel)
	if err != nil {
		return err
	}
	ctx := q.rulesContext()
	if err := q.beforeDelete(ctx, "", options); err != nil {
		return err
	}
	if p.entries, err = q.converted(p.entries); err != nil {
		return err
	}
	if err := q.removeAll(ctx, p.entries, options); err != nil {
		return err
	}
	return q.respondList(p)
}

// DeleteAll deletes all objects of a Kind, which need not be in the registry, as far as
// finalizers let them go. It is for objects whose kind is about to go: as in upstream,
// admission has no say in that. The first error ends it.
func (a *API) DeleteAll(ctx context.Context, k *kind.Kind) error {
	if _, err := a.store.Sync(ctx); err != nil {
		return err
	}
	var entries []*sqlstore.Entry
	from, to := sqlstore.RangeOf(k.Prefix())
	err := a.store.Current(k.Prefix()).Scan(ctx, from, to, func(e *sqlstore.Entry) bool {
		entries = append(entries, e)
		return true
	})
	if err != nil || len(entries) == 0 {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodDelete, "/", http.NoBody)
	if err != nil {
		return err
	}
	o := a.o
	o.Admission = nil
	version := k.Versions[0].Name
	info := &apirequest.RequestInfo{Verb: "deletecollection", APIGroup: k.Group, APIVersion: version, Resource: k.Resource}
	who := &user.DefaultInfo{Name: user.APIServerUser, Groups: []string{user.SystemPrivilegedGroup}}
	q := &request{api: New(a.store, a.kinds, o), r: r, info: info, who: who, kind: k, version: version, warn: &warnings{header: http.Header{}}}
	return q.removeAll(q.rulesContext(), entries, &metav1.DeleteOptions{})
}

// removeAll deletes the objects in their order, several at once. The first that cannot be
// deleted, in that order, ends it.
func (q *request) removeAll(ctx context.Context, entries []*sqlstore.Entry, options *metav1.DeleteOptions) error {
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
			if errs[i] = q.removeListed(ctx, e, options); errs[i] != nil {
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

// removeListed deletes one object of the list. That somebody else was faster is fine. To
// admission it has no name, as the request has none.
func (q *request) removeListed(ctx context.Context, e *sqlstore.Entry, options *metav1.DeleteOptions) error {
	namespace, name := q.kind.SplitKey(e.Key)
	one := *q
	one.namespace, one.name = namespace, name
	_, err := one.remove(ctx, e.Key, "", options)
	if errors.IsNotFound(err) {
		return nil
	}
	return err
}
