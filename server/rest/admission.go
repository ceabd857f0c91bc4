package rest

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
)

// attributes describes a write to admission.
func (q *request) attributes(op admission.Operation, obj, old, options runtime.Object, name string, dryRun bool) admission.Attributes {
	sub := ""
	if q.sub != nil {
		sub = q.sub.Name
	}
	namespace := q.namespace
	if !q.kind.Namespaced && q.kind.Resource == "namespaces" && q.kind.Group == "" {
		namespace = name // upstream takes a namespace to be in itself
	}
	return admission.NewAttributesRecord(obj, old, q.gvk(), namespace, name, q.gvr(), sub, op, options, dryRun, q.who)
}

// mutate lets admission change the object. That webhooks did so is what the attributes'
// reinvocation context tells afterwards.
func (q *request) mutate(ctx context.Context, a admission.Attributes) error {
	m, ok := q.api.o.Admission.(admission.MutationInterface)
	if !ok || !m.Handles(a.GetOperation()) {
		return nil
	}
	defer q.warn.asking()()
	if a.GetObject() == nil {
		return inTime(ctx, m.Admit(ctx, a, objects{q}))
	}
	object, err := meta.Accessor(a.GetObject())
	if err != nil {
		return inTime(ctx, m.Admit(ctx, a, objects{q}))
	}
	before := object.GetManagedFields()
	if err := inTime(ctx, m.Admit(ctx, a, objects{q})); err != nil {
		return err
	}
	q.keepFieldsValid(object, before)
	return nil
}

// keepFieldsValid undoes what admission did to managed fields that cannot be read then.
func (q *request) keepFieldsValid(object metav1.Object, before []metav1.ManagedFieldsEntry) {
	after := object.GetManagedFields()
	if sameFields(before, after) {
		return
	}
	if err := managedfields.ValidateManagedFields(after); err != nil {
		object.SetManagedFields(before)
		q.warn.AddWarning("", fmt.Sprintf(fieldmanager.InvalidManagedFieldsAfterMutatingAdmissionWarningFormat, err.Error()))
	}
}

// admits tells whether admission has a say in op.
func (q *request) admits(op admission.Operation) bool {
	return q.api.o.Admission != nil && q.api.o.Admission.Handles(op)
}

// validate lets admission refuse the finished object.
func (q *request) validate(ctx context.Context, a admission.Attributes) error {
	v, ok := q.api.o.Admission.(admission.ValidationInterface)
	if !ok || !v.Handles(a.GetOperation()) {
		return nil
	}
	defer q.warn.asking()()
	return inTime(ctx, v.Validate(ctx, a, objects{q}))
}

// inTime is the error of admission, unless the request's time ran out over it: then nothing
// is stored, even if a webhook that did not answer is to be ignored.
func inTime(ctx context.Context, err error) error {
	if over := ctx.Err(); over != nil {
		return over
	}
	return err
}

// validateUpdate is validate for an update, of which a subresource with a body of its own
// shows admission only that.
func (q *request) validateUpdate(ctx context.Context, obj, old, options runtime.Object, dry bool) (err error) {
	if !q.admits(admission.Update) {
		return nil
	}
	if q.sub != nil && q.sub.View != nil {
		if obj, err = q.bareView(obj); err != nil {
			return err
		}
		if old, err = q.bareView(old); err != nil {
			return err
		}
	}
	return q.validate(ctx, q.attributes(admission.Update, obj, old, options, q.name, dry))
}

// bareView is a subresource's view of an object without managed fields.
func (q *request) bareView(obj runtime.Object) (runtime.Object, error) {
	view, err := q.ownedView(obj)
	if err != nil {
		return nil, err
	}
	if m, err := meta.Accessor(view); err == nil {
		m.SetManagedFields(nil)
	}
	return view, nil
}

// authorizeCreate asks whether the caller of an update that creates may create.
func (q *request) authorizeCreate(ctx context.Context) error {
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
		return errors.NewInternalError(err)
	}
	return responsewriters.ForbiddenStatusError(a, reason)
}
