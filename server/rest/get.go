package rest

import (
	"context"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// get answers one object, or a subresource's view of it.
func (q *request) get() error {
	var options metav1.GetOptions
	if values := q.values(); len(values) > 0 {
		if err := decodeOptions(values, &options); err != nil {
			return err
		}
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

// fresh waits until memory is as new as a read with this resourceVersion asks: unset is
// everything committed before the call, "0" is anything, a number is at least that.
func (a *API) fresh(ctx context.Context, resourceVersion string) error {
	switch resourceVersion {
	case "0":
		return nil
	case "":
		_, err := a.store.Sync(ctx)
		return err
	}
	rv, err := parseVersion(resourceVersion)
	if err != nil {
		return err
	}
	return a.await(ctx, rv)
}

// await waits a short while for a revision that is not there yet.
func (a *API) await(ctx context.Context, rv int64) error {
	if rv <= a.store.Revision() {
		return nil
	}
	if _, err := a.store.Sync(ctx); err != nil {
		return err
	}
	if rv <= a.store.Revision() {
		return nil
	}
	short, cancel := context.WithTimeout(ctx, a.o.FutureWait)
	defer cancel()
	if err := a.store.Wait(short, rv); err != nil {
		return tooLargeVersion(rv, a.store.Revision())
	}
	return nil
}

// parseVersion reads a resourceVersion that is a number above 0.
func parseVersion(s string) (int64, error) {
	rv, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return 0, errors.NewBadRequest("invalid resource version \"" + s + "\": " + err.Error())
	}
	return int64(rv), nil
}
