package rest

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	apirest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// modification is the common part of update, patch and apply: it makes a new body from the present object and stores
// it, and starts again if another write was faster.
type modification struct {
	q       *request
	options *metav1.UpdateOptions
	uid     types.UID // that the object must have; empty: any
	creates bool      // an absent object is created; else the answer is 404
	// keepFields says that managed fields are stored however large they are.
	keepFields bool

	// body makes the new body from old. The new body is in hub form, with managed fields, and not shared. old is the
	// object, or a subresource's view of it; nil if the object is absent.
	body func(ctx context.Context, old runtime.Object) (runtime.Object, error)
	// unchanged tells whether the write is known to leave current as it is. nil: it is never known.
	unchanged func(ctx context.Context, current *sqlstore.Entry) (bool, error)
	// admitted is called after mutating admission of the new body. It may be nil.
	admitted func(a apiadmission.Attributes)
	// stored is called when after has been stored in place of before. It may be nil.
	stored func(before, after *sqlstore.Entry)
}

// respond commits the modification and answers with its outcome.
func (m *modification) respond() error {
	q := m.q
	entry, created, err := m.commit(q.rulesContext())
	if err != nil {
		return err
	}
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	if q.hasView() {
		return q.respondView(code, entry)
	}
	return q.respondEntry(code, entry)
}

func (m *modification) commit(ctx context.Context) (entry *sqlstore.Entry, created bool, err error) {
	err = m.q.api.retry(ctx, m.q.key(), func(current *sqlstore.Entry) (err error) {
		if current == nil {
			created = true
			entry, err = m.create(ctx)
			return err
		}
		created = false
		entry, err = m.change(ctx, current)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return entry, created, nil
}

// change is one attempt against the entry current.
func (m *modification) change(ctx context.Context, current *sqlstore.Entry) (*sqlstore.Entry, error) {
	ctx, end := attempt(ctx)
	defer end()
	q := m.q
	if m.unchanged != nil {
		if known, err := m.unchanged(ctx, current); err != nil {
			return nil, err
		} else if known {
			return q.api.confirm(ctx, current, dryRun(m.options.DryRun))
		}
	}
	old, err := q.load(q.ctx, current)
	if err != nil {
		return nil, err
	}
	if err := q.checkUID(m.uid, old); err != nil {
		return nil, err
	}
	obj, err := m.newObject(ctx, old)
	if err != nil {
		return nil, err
	}
	entry, err := m.replace(ctx, current, obj, old)
	if err == nil && m.stored != nil {
		m.stored(current, entry)
	}
	return entry, err
}

// newObject makes the new object in hub form from the old one and lets admission change it. For a
// subresource with a body of its own that body is changed, and then put into the object.
func (m *modification) newObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	q, ask := m.q, admitter{m.q}
	oldBody := old
	if q.hasView() {
		view, err := q.ownedView(old)
		if err != nil {
			return nil, err
		}
		oldBody = view
	}
	body, err := m.body(ctx, oldBody)
	if err != nil {
		return nil, err
	}
	a := ask.attributes(apiadmission.Update, body, oldBody, m.options, q.name, dryRun(m.options.DryRun))
	if err := ask.mutate(ctx, a); err != nil {
		return nil, err
	}
	if m.admitted != nil {
		m.admitted(a)
	}
	accessor, err := meta.Accessor(body)
	if err != nil {
		return nil, err
	}
	dedupOwners(accessor, q.warn, duplicateOwnersAdmitted)
	if q.sub == nil || q.sub.Apply == nil {
		return body, nil
	}
	obj := old.DeepCopyObject()
	return obj, q.sub.Apply(ctx, q.version, obj, body)
}

// replace checks the version that the new object is based on, runs the rules and commits.
func (m *modification) replace(ctx context.Context, current *sqlstore.Entry, obj, old runtime.Object) (*sqlstore.Entry, error) {
	q := m.q
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if err := q.authorizeContents(ctx, obj, old); err != nil {
		return nil, err
	}
	if err := q.checkVersion(accessor, current, q.strategy()); err != nil {
		return nil, err
	}
	if q.kind.Hooks.CompleteChanged != nil {
		if err := q.kind.Hooks.CompleteChanged(ctx, obj, old); err != nil {
			return nil, err
		}
	}
	finish, err := q.beginUpdate(ctx, obj, old, m.options)
	if err != nil {
		return nil, err
	}
	obj, value, err := m.successor(ctx, obj, old)
	if err != nil {
		finish(ctx, false)
		return nil, err
	}
	if q.finishing(ctx, current.Key, obj, old) {
		finish(ctx, false) // the update itself is never stored
		return m.finishDeletion(ctx, current, old, value)
	}
	entry, err := q.api.overwrite(ctx, current, value, q.mayWait(obj, old), dryRun(m.options.DryRun))
	finishCommitted(ctx, finish, err)
	return entry, err
}

// successor returns the object that is stored in place of old, and its value in the log, if the
// rules and admission allow it.
func (m *modification) successor(ctx context.Context, obj, old runtime.Object) (runtime.Object, []byte, error) {
	if err := m.q.checkMeta(obj); err != nil {
		return nil, nil, err
	}
	if err := apirest.BeforeUpdate(m.q.limitedUpdate(), ctx, obj, old); err != nil {
		return nil, nil, err
	}
	obj, err := keepTimes(ctx, obj, old)
	if err != nil {
		return nil, nil, err
	}
	if err := (admitter{m.q}).validateUpdate(ctx, obj, old, m.options, dryRun(m.options.DryRun)); err != nil {
		return nil, nil, err
	}
	value, err := m.q.encodeWithin(obj, m.keepFields)
	return obj, value, err
}

// finishDeletion deletes an object when an update has removed the last thing that held it, such as a finalizer. The
// answer is the update's object. The tombstone has the state before the update, because the update itself is never
// stored. It is no error if another deletion was faster.
func (m *modification) finishDeletion(ctx context.Context, current *sqlstore.Entry, old runtime.Object, value []byte) (*sqlstore.Entry, error) {
	_, err := m.q.api.commit(ctx, object.Tombstone(current), dryRun(m.options.DryRun))
	if err == nil {
		m.q.afterDelete(old, m.options.DryRun)
	} else if !alreadyGone(err) {
		return nil, err
	}
	return &sqlstore.Entry{Key: current.Key, Revision: current.Revision, Value: object.Splice(value, current.Revision)}, nil
}

// create makes an absent object.
func (m *modification) create(ctx context.Context) (*sqlstore.Entry, error) {
	q := m.q
	if !m.creates {
		return nil, apierrors.NewNotFound(q.groupResource(), q.name)
	}
	if err := q.checkUID(m.uid, nil); err != nil {
		return nil, err
	}
	obj, err := m.body(ctx, nil)
	if err != nil {
		return nil, err
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	accessor.SetResourceVersion("") // there is no stored version to compare with
	apirest.WipeObjectMetaSystemFields(accessor)
	if err := m.authorizeCreate(ctx); err != nil {
		return nil, err
	}
	n := creation{q: q, keepFields: m.keepFields, options: &metav1.CreateOptions{
		TypeMeta: optionsType("CreateOptions"),
		DryRun:   m.options.DryRun, FieldManager: m.options.FieldManager, FieldValidation: m.options.FieldValidation,
	}}
	entry, err := n.store(ctx, obj)
	if apierrors.IsAlreadyExists(err) {
		return nil, m.lostRace(err)
	}
	return entry, err
}

// authorizeCreate asks the authorizer whether the caller may create the object: until now only the
// update was authorized.
func (m *modification) authorizeCreate(ctx context.Context) error {
	q := m.q
	if q.api.o.Authorizer == nil {
		return nil
	}
	a := authorizer.AttributesRecord{
		User: q.who, Verb: "create", Namespace: q.namespace, Name: q.name, Path: q.r.URL.Path,
		APIGroup: q.kind.Group, APIVersion: q.version, Resource: q.kind.Resource, ResourceRequest: true,
	}
	decision, reason, err := q.api.o.Authorizer.Authorize(ctx, a)
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return apierrors.NewInternalError(err)
	}
	return responsewriters.ForbiddenStatusError(a, reason)
}

// lostRace makes an update that meant to create start again, because another request has created
// the object.
func (m *modification) lostRace(err error) error {
	if now := m.q.api.store.Get(m.q.key()); now != nil {
		return &sqlstore.ConflictError{Key: m.q.key(), Current: now}
	}
	return err
}

// ownedView is a subresource's view of an object with the managed fields that it shows.
func (t *target) ownedView(obj runtime.Object) (runtime.Object, error) {
	if t.sub.Own == nil {
		return t.sub.View(obj)
	}
	return t.sub.Own(t.version, obj)
}

// checkVersion compares the resourceVersion that the new object names with the current one.
func (q *request) checkVersion(m metav1.Object, current *sqlstore.Entry, rules apirest.RESTUpdateStrategy) error {
	rv := m.GetResourceVersion()
	now := strconv.FormatInt(current.Revision, 10)
	switch {
	case rv == now:
		return nil
	case (rv == "" || rv == "0") && rules.AllowUnconditionalUpdate(q.rulesContext()):
		m.SetResourceVersion(now)
		return nil
	case rv == "" || rv == "0":
		return apierrors.NewInvalid(schema.GroupKind{Group: q.kind.Group, Kind: q.kind.Resource}, q.name, field.ErrorList{
			field.Invalid(field.NewPath("metadata").Child("resourceVersion"), uint64(0), "must be specified for an update"),
		})
	}
	if _, err := strconv.ParseUint(rv, 10, 64); err != nil {
		return response.Unreasoned(err)
	}
	return conflictModified(q.groupResource(), q.name)
}

// finishing tells whether an update completes the deletion of an object that has a deletionTimestamp.
func (t *target) finishing(ctx context.Context, key string, obj, old runtime.Object) bool {
	now, err1 := meta.Accessor(obj)
	was, err2 := meta.Accessor(old)
	if err1 != nil || err2 != nil || len(now.GetFinalizers()) > 0 || was.GetDeletionTimestamp() == nil {
		return false
	}
	if grace := was.GetDeletionGracePeriodSeconds(); grace != nil && *grace != 0 {
		return false
	}
	return t.kind.Hooks.DeletionDone == nil || t.kind.Hooks.DeletionDone(ctx, key, obj, old)
}

// checkUID refuses a write that is meant for an object with another UID than old. old is nil if
// there is no object.
func (t *target) checkUID(want types.UID, old runtime.Object) error {
	have := types.UID("")
	if m, err := meta.Accessor(old); err == nil {
		have = m.GetUID()
	}
	if want == "" || want == have {
		return nil
	}
	failed := storage.NewInvalidObjError(t.upstreamKey(t.key()), "Precondition failed: "+differs("UID", string(want), string(have)))
	return apierrors.NewConflict(t.groupResource(), t.name, failed)
}

// conflictModified is upstream's answer to an update based on another version.
func conflictModified(gr schema.GroupResource, name string) error {
	return apierrors.NewConflict(gr, name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
}
