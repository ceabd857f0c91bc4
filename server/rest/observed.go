package rest

import (
	"cmp"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/sqlstore"
)

// getObserved answers an object that is not in the log.
func (q *request) getObserved(options *metav1.GetOptions) error {
	obj, err := q.kind.Observed.Get(q.rulesContext(), q.name, options)
	if err != nil {
		return response.FromRegistry(err)
	}
	e, err := q.observedEntry(obj)
	if err != nil {
		return err
	}
	return q.respondEntry(http.StatusOK, e)
}

// listObserved answers all selected objects that are not in the log, in one page without a
// version.
func (q *request) listObserved() error {
	options, _, err := q.listOptions()
	if err != nil {
		return err
	}
	list, err := q.kind.Observed.List(q.rulesContext(), options)
	if err != nil {
		return response.FromRegistry(err)
	}
	p := page{unversioned: true}
	err = meta.EachListItem(list, func(obj runtime.Object) error {
		e, err := q.observedEntry(obj)
		p.entries = append(p.entries, e)
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(p.entries, func(a, b *sqlstore.Entry) int { return cmp.Compare(a.Key, b.Key) })
	return q.respondList(p)
}

// observedEntry makes an entry of obj, as if it were in the log, because answers are made of
// entries.
func (t *target) observedEntry(obj runtime.Object) (*sqlstore.Entry, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	value, err := t.kind.Codec.Encode(obj)
	if err != nil {
		return nil, err
	}
	return &sqlstore.Entry{Key: t.kind.Key(m.GetNamespace(), m.GetName()), Value: value}, nil
}

// unwatchable is upstream's answer to a watch of a resource that can be listed only.
func (t *target) unwatchable() error {
	return apierrors.NewMethodNotSupported(t.groupResource(), "watch")
}
