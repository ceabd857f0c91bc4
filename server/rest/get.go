package rest

import (
	"context"
	"math"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
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
	if err := q.api.fresh(q.r.Context(), options.ResourceVersion); err != nil {
		return err
	}
	entry := q.api.store.Get(q.key())
	if entry == nil {
		return errors.NewNotFound(q.groupResource(), q.name)
	}
	if q.sub != nil && q.sub.View != nil {
		return q.respondView(http.StatusOK, entry)
	}
	return q.respondEntry(http.StatusOK, entry)
}

// refuseExport is about a parameter of old.
func refuseExport(values []string) error {
	var asked bool
	if err := runtime.Convert_Slice_string_To_bool(&values, &asked, nil); err != nil {
		return errors.NewBadRequest("the export parameter cannot be parsed: " + err.Error())
	}
	if asked {
		return errors.NewBadRequest("the export parameter, deprecated since v1.14, is no longer supported")
	}
	return nil
}

// fresh waits until memory is as new as a read with this resourceVersion asks: unset is
// everything committed before the call, "0" is anything, a number is at least that.
func (a *API) fresh(ctx context.Context, resourceVersion string) error {
	if resourceVersion == "" {
		_, err := a.store.Sync(ctx)
		return err
	}
	rv, err := parseVersion(resourceVersion)
	if err != nil {
		return plain(err)
	}
	return a.await(ctx, rv)
}

// await waits a short while for a revision that is not there yet.
func (a *API) await(ctx context.Context, rv uint64) error {
	if rv > math.MaxInt64 {
		return tooLargeVersion(rv, a.store.Revision())
	}
	if int64(rv) <= a.store.Revision() {
		return nil
	}
	if _, err := a.store.Sync(ctx); err != nil {
		return err
	}
	if int64(rv) <= a.store.Revision() {
		return nil
	}
	short, cancel := context.WithTimeout(ctx, a.o.FutureWait)
	defer cancel()
	if err := a.store.Wait(short, int64(rv)); err != nil {
		return tooLargeVersion(rv, a.store.Revision())
	}
	return nil
}

// parseVersion reads a resourceVersion; unset is 0. Upstream answers its error as it is
// (500) to get and watch and as a bad request to list.
func parseVersion(s string) (uint64, error) {
	if s == "" || s == "0" {
		return 0, nil
	}
	rv, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, field.Invalid(field.NewPath("resourceVersion"), s, err.Error())
	}
	return rv, nil
}
