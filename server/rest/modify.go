package rest

import (
	"context"
	stderrors "errors"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

	"github.com/plinth-io/plinth/sqlstore"
)

// modification is what update, patch and apply have in common: a new body made from
// what is there, again and again until nobody else has changed it meanwhile.
type modification struct {
	options *metav1.UpdateOptions
	uid     types.UID // of the object that the caller means; empty if it does not say
	applied *patching // a server-side apply, which also creates and tracks fields itself
	// body makes the new body, in hub form and the callee's own, from the old one: the
	// object, or a subresource's view of it; nil if the object is absent.
	body func(ctx context.Context, old runtime.Object) (runtime.Object, error)
}

// modify commits a modification.
func (q *request) modify(ctx context.Context, mod *modification) (entry *sqlstore.Entry, created bool, err error) {
	err = q.settle(ctx, q.key(), func(current *sqlstore.Entry) (err error) {
		entry, created, err = q.modifyOnce(ctx, mod, current)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return entry, created, nil
}

// settle tries a write of key until nobody else was faster, see sqlstore.Store.Settle.
func (q *request) settle(ctx context.Context, key string, try func(current *sqlstore.Entry) error) error {
	return q.api.store.Settle(ctx, key, refused, try)
}

// refused tells errors that come from looking at the object from those of the database.
func refused(err error) bool {
	var api errors.APIStatus
	return stderrors.As(err, &api)
}

// modifyOnce is one attempt against the entry current, nil for absent.
func (q *request) modifyOnce(ctx context.Context, mod *modification, current *sqlstore.Entry) (*sqlstore.Entry, bool, error) {
	if current == nil {
		entry, err := q.modifyAbsent(ctx, mod)
		return entry, true, err
	}
	if mod.applied != nil {
		if known, err := mod.applied.again(ctx, current); err != nil {
			return nil, false, err
		} else if known {
			entry, err := q.api.store.Confirm(ctx, current)
			return entry, false, err
		}
	}
	old, err := q.load(current)
	if err != nil {
		return nil, false, err
	}
	if err := q.checkUID(mod.uid, old); err != nil {
		return nil, false, err
	}
	obj, err := q.newObject(ctx, mod, old)
	if err != nil {
		return nil, false, err
	}
	entry, err := q.replace(ctx, mod, current, obj, old)
	if err == nil && mod.applied != nil {
		mod.applied.remember(current, entry)
	}
	return entry, false, err
}

// newObject makes the new object in hub form from the old one, through the subresource's
// body if it has one of its own, and lets admission change it.
func (q *request) newObject(ctx context.Context, mod *modification, old runtime.Object) (runtime.Object, error) {
	oldBody := old
	if q.sub != nil && q.sub.View != nil {
		view, err := q.ownedView(old)
		if err != nil {
			return nil, err
		}
		oldBody = view
	}
	body, err := mod.body(ctx, oldBody)
	if err != nil {
		return nil, err
	}
	if mod.applied == nil {
		body = q.track(oldBody, body, mod.options.FieldManager)
	}
	a := q.attributes(admission.Update, body, oldBody, mod.options, q.name, dryRun(mod.options.DryRun))
	if err := q.mutate(ctx, a); err != nil {
		return nil, err
	}
	if mod.applied != nil {
		mod.applied.mutated = a.GetReinvocationContext().ShouldReinvoke()
	}
	m, err := meta.Accessor(body)
	if err != nil {
		return nil, err
	}
	q.dedupOwners(m, true)
	if q.sub == nil || q.sub.Apply == nil {
		return body, nil
	}
	obj := old.DeepCopyObject()
	return obj, q.sub.Apply(q.version, obj, body)
}

// ownedView is a subresource's view of an object with the managed fields that it shows.
func (q *request) ownedView(obj runtime.Object) (runtime.Object, error) {
	if q.sub.Own == nil {
		return q.sub.View(obj)
	}
	return q.sub.Own(q.version, obj)
}

// replace checks the version that the new object is based on, runs the rules and commits.
func (q *request) replace(ctx context.Context, mod *modification, current *sqlstore.Entry, obj, old runtime.Object) (*sqlstore.Entry, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if err := q.checkVersion(m, current, q.strategy()); err != nil {
		return nil, err
	}
	if q.kind.BeforeUpdate != nil {
		if err := q.kind.BeforeUpdate(ctx, obj, old); err != nil {
			return nil, err
		}
	}
	finish, err := q.beginUpdate(ctx, obj, old, mod.options)
	if err != nil {
		return nil, err
	}
	obj, value, err := q.successor(ctx, mod, obj, old)
	if err != nil {
		finish(ctx, false)
		return nil, err
	}
	if q.finishing(ctx, current.Key, obj, old) {
		finish(ctx, false) // the update itself is never stored
		return q.finish(ctx, mod, current, old, value)
	}
	entry, err := q.overwrite(ctx, current, value, dryRun(mod.options.DryRun))
	finishCommitted(ctx, finish, err)
	return entry, err
}

// successor is what is stored in place of old, if the rules and admission let it.
func (q *request) successor(ctx context.Context, mod *modification, obj, old runtime.Object) (runtime.Object, []byte, error) {
	if err := rest.BeforeUpdate(q.strategy(), ctx, obj, old); err != nil {
		return nil, nil, err
	}
	obj, err := keepTimes(ctx, obj, old)
	if err != nil {
		return nil, nil, err
	}
	if err := q.validateUpdate(ctx, obj, old, mod.options, dryRun(mod.options.DryRun)); err != nil {
		return nil, nil, err
	}
	value, err := q.store(obj)
	return obj, value, err
}

// checkVersion compares the resourceVersion that the new object names with the current.
func (q *request) checkVersion(m metav1.Object, current *sqlstore.Entry, rules rest.RESTUpdateStrategy) error {
	rv := m.GetResourceVersion()
	now := strconv.FormatInt(current.Revision, 10)
	switch {
	case rv == now:
		return nil
	case (rv == "" || rv == "0") && rules.AllowUnconditionalUpdate():
		m.SetResourceVersion(now)
		return nil
	case rv == "" || rv == "0":
		return errors.NewInvalid(schema.GroupKind{Group: q.kind.Group, Kind: q.kind.Resource}, q.name, field.ErrorList{
			field.Invalid(field.NewPath("metadata").Child("resourceVersion"), uint64(0), "must be specified for an update"),
		})
	}
	if _, err := strconv.ParseUint(rv, 10, 64); err != nil {
		return unreasoned(err)
	}
	return conflictModified(q.groupResource(), q.name)
}

// finishing tells whether an update takes the last thing away that kept an object which
// is being deleted.
func (q *request) finishing(ctx context.Context, key string, obj, old runtime.Object) bool {
	now, err1 := meta.Accessor(obj)
	was, err2 := meta.Accessor(old)
	if err1 != nil || err2 != nil || len(now.GetFinalizers()) > 0 || was.GetDeletionTimestamp() == nil {
		return false
	}
	if grace := was.GetDeletionGracePeriodSeconds(); grace != nil && *grace != 0 {
		return false
	}
	return q.kind.Finishing == nil || q.kind.Finishing(ctx, key, obj, old)
}

// finish deletes the object that an update let go. The answer is the update's object, the
// last state in the log is the one before: the update itself is never stored. That somebody
// else was faster is fine.
func (q *request) finish(ctx context.Context, mod *modification, current *sqlstore.Entry, old runtime.Object, value []byte) (*sqlstore.Entry, error) {
	_, err := q.commit(ctx, sqlstore.Tombstone(current), dryRun(mod.options.DryRun))
	if err == nil {
		q.afterDelete(old, mod.options.DryRun)
	} else if !alreadyGone(err) {
		return nil, err
	}
	return sqlstore.NewEntry(&sqlstore.Row{Key: current.Key, Revision: current.Revision, Value: value}), nil
}

// modifyAbsent makes the object where the rules allow that.
func (q *request) modifyAbsent(ctx context.Context, mod *modification) (*sqlstore.Entry, error) {
	if err := q.checkUID(mod.uid, nil); err != nil {
		return nil, err
	}
	if q.sub != nil || mod.applied == nil && !q.strategy().AllowCreateOnUpdate() {
		return nil, errors.NewNotFound(q.groupResource(), q.name)
	}
	obj, err := mod.body(ctx, nil)
	if err != nil {
		return nil, err
	}
	if mod.applied == nil {
		obj = q.track(q.kind.Codec.New(), obj, mod.options.FieldManager)
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	m.SetResourceVersion("") // there is none to compare it with
	if err := q.authorizeCreate(ctx); err != nil {
		return nil, err
	}
	options := &metav1.CreateOptions{
		TypeMeta: optionsType("CreateOptions"),
		DryRun:   mod.options.DryRun, FieldManager: mod.options.FieldManager, FieldValidation: mod.options.FieldValidation,
	}
	entry, err := q.admitAndInsert(ctx, obj, options)
	if errors.IsAlreadyExists(err) {
		return nil, q.someoneCreated(err)
	}
	return entry, err
}

// checkUID refuses a write that is meant for another object than old, or than none.
func (q *request) checkUID(want types.UID, old runtime.Object) error {
	have := types.UID("")
	if m, err := meta.Accessor(old); err == nil {
		have = m.GetUID()
	}
	if want == "" || want == have {
		return nil
	}
	key := q.kind.UpstreamPrefix + strings.TrimPrefix(q.key(), q.kind.Prefix())
	failed := storage.NewInvalidObjError(key, preconditionError("UID", string(want), string(have)).Error())
	return errors.NewConflict(q.groupResource(), q.name, failed)
}

// someoneCreated makes an update that meant to create start again when it lost the race.
func (q *request) someoneCreated(err error) error {
	if now := q.api.store.Get(q.key()); now != nil {
		return &sqlstore.ConflictError{Key: q.key(), Current: now}
	}
	return err
}
