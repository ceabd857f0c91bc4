package rest

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apirest "k8s.io/apiserver/pkg/registry/rest"

	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/sqlstore"
)

// getObserved answers an object that is not in the log.
func (q *request) getObserved(options *metav1.GetOptions) error {
	obj, err := q.kind.Observed.Get(q.rulesContext(), q.name, options)
	if err != nil {
		return response.FromRegistry(err)
	}
	e, err := q.kind.Entry(obj)
	if err != nil {
		return err
	}
	return q.respondEntry(http.StatusOK, e)
}

// listObserved answers the selected objects that are not in the log: all of them in one page without a
// version, or those that the Kind has put into a page.
func (q *request) listObserved() error {
	options, _, err := q.listOptions()
	if err != nil {
		return err
	}
	list, err := q.kind.Observed.List(q.rulesContext(), options)
	if err != nil {
		return response.FromRegistry(err)
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	p := page{unversioned: m.GetResourceVersion() == "", next: m.GetContinue()}
	if !p.unversioned {
		if p.revision, err = strconv.ParseInt(m.GetResourceVersion(), 10, 64); err != nil {
			return err
		}
	}
	err = meta.EachListItem(list, func(obj runtime.Object) error {
		e, err := q.kind.Entry(obj)
		p.entries = append(p.entries, e)
		return err
	})
	if err != nil {
		return err
	}
	if p.unversioned {
		slices.SortFunc(p.entries, func(a, b *sqlstore.Entry) int { return cmp.Compare(a.Key, b.Key) })
	}
	return q.respondList(p)
}

// deleteObserved lets the Kind delete what is selected, which answers with a Status.
func (q *request) deleteObserved(options *metainternalversion.ListOptions, how *metav1.DeleteOptions) error {
	result, err := q.kind.Observed.(apirest.CollectionDeleter).DeleteCollection(q.rulesContext(), nil, how, options)
	if err != nil {
		return response.FromRegistry(err)
	}
	return q.respondStatus(http.StatusOK, result.(*metav1.Status))
}

// unwatchable is upstream's answer to a watch of a resource that can be listed only.
func (t *target) unwatchable() error {
	return apierrors.NewMethodNotSupported(t.groupResource(), "watch")
}
