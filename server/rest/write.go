package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apirest "k8s.io/apiserver/pkg/registry/rest"

	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// What verbs share to write objects.

// attempt returns a context for one attempt to write. The caller ends it when the change is stored or
// refused: admission may have counted the object, and learns by the end of the context that it is
// there or never will be. The answer to the client may take longer.
func attempt(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

// commit appends one change. A dry run only checks the change's expectation and shows what
// would be stored.
func (a *API) commit(ctx context.Context, c sqlstore.Change, dry bool) (*sqlstore.Entry, error) {
	if !dry {
		return a.store.Commit(ctx, c)
	}
	if _, err := a.store.Sync(ctx); err != nil {
		return nil, err
	}
	current, revision := a.store.Get(c.Key), int64(0)
	if current != nil {
		revision = current.Revision
	}
	if revision != c.Expect {
		return nil, &sqlstore.ConflictError{Key: c.Key, Expect: c.Expect, Current: current}
	}
	if revision == 0 {
		return &sqlstore.Entry{Key: c.Key, Value: c.Value}, nil
	}
	return &sqlstore.Entry{Key: c.Key, Revision: revision, Value: object.Splice(c.Value, revision)}, nil
}

// overwrite commits the new value of an object. A value that is the same as the present one
// is confirmed only. Any other may wait for company.
func (a *API) overwrite(ctx context.Context, current *sqlstore.Entry, value []byte, wait time.Duration, dry bool) (*sqlstore.Entry, error) {
	if unchanged := object.Splice(value, current.Revision); bytes.Equal(unchanged, current.Value) {
		return a.confirm(ctx, current, dry)
	}
	return a.commit(ctx, sqlstore.Change{Key: current.Key, Expect: current.Revision, Value: value, MayWait: wait}, dry)
}

// mayWait returns how long the update from old to obj may wait for others to share its transaction.
func (q *request) mayWait(obj, old runtime.Object) time.Duration {
	most := q.api.o.CommitDelay
	if most == 0 || q.kind.Hooks.MayWait == nil {
		return 0
	}
	return min(most, q.kind.Hooks.MayWait(obj, old))
}

// confirm is for a write that changes nothing. It rewrites an object whose form in the database
// is out of date, for example because it is encrypted with an old key.
func (a *API) confirm(ctx context.Context, current *sqlstore.Entry, dry bool) (*sqlstore.Entry, error) {
	if dry {
		return a.store.Confirm(ctx, current)
	}
	return a.store.Refresh(ctx, current)
}

// retry tries a write of key until its commit meets no conflict, as upstream's
// GuaranteedUpdate does; see sqlstore.Store.Retry.
func (a *API) retry(ctx context.Context, key string, try func(current *sqlstore.Entry) error) error {
	return a.store.Retry(ctx, key, refused, try)
}

// refused tells whether an error is an answer about the object, and not the database's.
func refused(err error) bool {
	var api apierrors.APIStatus
	return errors.As(err, &api)
}

// alreadyGone tells whether a change came too late because its object has been deleted.
func alreadyGone(err error) bool {
	var conflict *sqlstore.ConflictError
	return errors.As(err, &conflict) && conflict.Current == nil
}

// dryRun reads the option of the same name, whose values have been validated.
func dryRun(values []string) bool { return len(values) > 0 }

// strategy has the rules for an update of the target.
func (t *target) strategy() apirest.RESTUpdateStrategy {
	if t.sub != nil && t.sub.Update != nil {
		return t.sub.Update
	}
	return t.kind.Update
}

// createsOnUpdate tells whether an update of an absent object creates the object.
func (q *request) createsOnUpdate() bool {
	return q.sub == nil && q.kind.Update.AllowCreateOnUpdate(q.rulesContext())
}

// checkIdentity makes sure that a body is about the object that the path names.
func (t *target) checkIdentity(m metav1.Object) error {
	if err := apirest.EnsureObjectNamespaceMatchesRequestNamespace(t.namespace, m); err != nil {
		return err
	}
	if m.GetName() == "" {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: %v", t.name, "name must be provided"))
	}
	if m.GetName() != t.name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", m.GetName(), t.name))
	}
	return nil
}

// encode returns what the log holds of an object in hub form.
func (t *target) encode(ctx context.Context, obj runtime.Object) ([]byte, error) {
	if c := t.kind.Conversion(); c != nil {
		stored, err := c.Write(ctx, obj)
		if err != nil {
			return nil, response.ConversionError(err)
		}
		obj = stored
	}
	return t.kind.Codec.Encode(obj)
}

// encodeWithin encodes obj for the log. Managed fields that would make it too large are left out,
// because they serve the object. keepFields is for an apply, which is about managed fields as much
// as about the object: it fails instead.
func (q *request) encodeWithin(obj runtime.Object, keepFields bool) ([]byte, error) {
	ctx := q.ctx
	value, err := q.encode(ctx, obj)
	if err != nil || keepFields || len(value) <= q.api.store.MaxValueBytes() {
		return value, err
	}
	m, err := meta.Accessor(obj)
	if err != nil || len(m.GetManagedFields()) == 0 {
		return value, err
	}
	m.SetManagedFields(nil)
	return q.encode(ctx, obj)
}

// beingDeleted tells whether an entry's object has a deletionTimestamp.
func beingDeleted(e *sqlstore.Entry) bool {
	if e == nil || e.Unreadable() != nil {
		return false
	}
	var m struct {
		DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
	}
	return json.Unmarshal(response.MetadataJSON(e.Value), &m) == nil && m.DeletionTimestamp != nil
}
