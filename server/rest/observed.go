package rest

import (
	"cmp"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	apirest "k8s.io/apiserver/pkg/registry/rest"

	"github.com/plinth-io/plinth/server/kind"
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

// listObserved answers a list of objects that are not in the log: a page that the Kind has made, or all objects,
// without a resourceVersion.
func (q *request) listObserved() error {
	options, _, err := q.listOptions()
	if err != nil {
		return err
	}
	if pager, ok := q.kind.Observed.(kind.Pager); ok {
		return q.listPage(pager, options)
	}
	list, err := q.kind.Observed.(apirest.Lister).List(q.rulesContext(), options)
	if err != nil {
		return response.FromRegistry(err)
	}
	p := page{unversioned: true}
	err = meta.EachListItem(list, func(obj runtime.Object) error {
		e, err := q.kind.Entry(obj)
		p.entries = append(p.entries, e)
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(p.entries, func(a, b *sqlstore.Entry) int { return cmp.Compare(a.Key, b.Key) })
	return q.respondList(p)
}

// The size of a page of a Pager, in bytes. An answer that is written while its objects are read may be larger than one
// that is made in one piece, which is in memory several times while it is encoded.
const (
	streamedPage = 8 << 20
	gatheredPage = 1 << 20
)

// listPage answers with a page.
func (q *request) listPage(pager kind.Pager, options *metainternalversion.ListOptions) error {
	room := kind.Room{Bytes: gatheredPage, Light: q.takesLight()}
	if room.Light || q.streams() {
		room.Bytes = streamedPage
	}
	found, err := pager.Page(q.rulesContext(), options, room)
	if err != nil {
		return response.FromRegistry(err)
	}
	if !room.Light {
		q.fill = found.Fill
	}
	return q.respondList(page{revision: found.Revision, next: found.Next, entries: found.Entries})
}

// takesLight says that the answer has only metadata or columns of the objects.
func (q *request) takesLight() bool {
	switch q.out.Form {
	case response.AsMetadataList:
		return true
	case response.AsTable:
		include, err := response.IncludeObject(q.values())
		return err == nil && include != metav1.IncludeObject
	}
	return false
}

// streams says that the list is written piece by piece and need not be in memory as a whole.
func (q *request) streams() bool {
	return q.out.Form == response.AsObject && !q.out.Pretty && q.event(auditinternal.LevelRequestResponse) == nil &&
		(q.out.MediaType == response.MediaJSON || q.out.MediaType == response.MediaCBOR)
}

// deleteObserved lets the Kind delete the selected objects. The answer is a Status.
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
