package rest

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// get answers one object, or a subresource's view of it.
func (q *request) get() error {
	if q.sub != nil && q.sub.Stream != nil {
		return q.getBytes()
	}
	var options metav1.GetOptions
	if values := q.values(); len(values) > 0 {
		if err := refuseExport(values["export"]); err != nil {
			return err
		}
		if err := decodeOptions(values, &options); err != nil {
			return err
		}
	}
	if q.kind.Observed != nil {
		return q.getObserved(&options)
	}
	if err := q.api.fresh(q.ctx, options.ResourceVersion); err != nil {
		return err
	}
	entry := q.api.store.Get(q.key())
	if entry == nil {
		return apierrors.NewNotFound(q.groupResource(), q.name)
	}
	if err := q.unreadable(entry); err != nil {
		return err
	}
	if q.hasView() {
		return q.respondView(http.StatusOK, entry)
	}
	return q.respondEntry(http.StatusOK, entry)
}

// refuseExport rejects the removed parameter export.
func refuseExport(values []string) error {
	var asked bool
	if err := runtime.Convert_Slice_string_To_bool(&values, &asked, nil); err != nil {
		return apierrors.NewBadRequest("the export parameter cannot be parsed: " + err.Error())
	}
	if asked {
		return apierrors.NewBadRequest("the export parameter, deprecated since v1.14, is no longer supported")
	}
	return nil
}
