package rest

import (
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
	if err := q.removeAll(p.entries, options); err != nil {
		return err
	}
	return q.respondList(p)
}

func (q *request) removeAll(entries []*sqlstore.Entry, options *metav1.DeleteOptions) error {
	group, ctx := errgroup.WithContext(q.rulesContext())
	group.SetLimit(deleteWorkers)
	for _, e := range entries {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return q.removeListed(e, options) })
	}
	return group.Wait()
}

// removeListed deletes one object of the list. That somebody else was faster is fine.
func (q *request) removeListed(e *sqlstore.Entry, options *metav1.DeleteOptions) error {
	namespace, name := q.kind.SplitKey(e.Key)
	one := *q
	one.namespace, one.name = namespace, name
	_, err := one.remove(one.rulesContext(), e.Key, name, options)
	if errors.IsNotFound(err) {
		return nil
	}
	return err
}
