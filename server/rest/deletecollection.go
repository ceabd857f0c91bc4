package rest

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
