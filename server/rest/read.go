package rest

import (
	"context"
	"math"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/sqlstore"
)

// Helpers for reading objects, shared by the verbs.

// fresh waits until memory is as new as a read with this resourceVersion asks. Unset asks for
// everything that was committed before the call, "0" for any state, a number for at least that
// revision.
func (a *API) fresh(ctx context.Context, resourceVersion string) error {
	if resourceVersion == "" {
		_, err := a.store.Sync(ctx)
		return err
	}
	rv, err := parseVersion(resourceVersion)
	if err != nil {
		return response.AsStatus(err)
	}
	return a.await(ctx, rv)
}

// await waits, for a bounded time, until memory has reached a revision.
func (a *API) await(ctx context.Context, rv uint64) error {
	if rv > math.MaxInt64 {
		return response.TooLargeVersion(rv, a.store.Revision())
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
		return response.TooLargeVersion(rv, a.store.Revision())
	}
	return nil
}

// parseVersion reads a resourceVersion; unset is 0. Upstream answers an error as a 500 to get and
// watch, and as a bad request to list.
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

// load decodes an entry to an object in hub form that the caller may change; nil for no entry.
func (t *target) load(ctx context.Context, e *sqlstore.Entry) (runtime.Object, error) {
	if e == nil {
		return nil, nil
	}
	if err := t.unchangeable(e); err != nil {
		return nil, err
	}
	e, err := t.convertedEntry(ctx, e)
	if err != nil {
		return nil, err
	}
	return response.Load(t.kind, e)
}

// convertedEntry returns an entry in the target's version.
func (t *target) convertedEntry(ctx context.Context, e *sqlstore.Entry) (*sqlstore.Entry, error) {
	return response.ConvertEntry(ctx, t.kind, t.version, e)
}

// converted returns entries in the target's version.
func (t *target) converted(ctx context.Context, entries []*sqlstore.Entry) ([]*sqlstore.Entry, error) {
	return response.Convert(ctx, t.kind, t.version, entries)
}
