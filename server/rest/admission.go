package rest

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager"
)

// admitter asks admission about what a request does. Through it plugins create, default and convert objects, see
// objects.go.
type admitter struct{ q *request }

// attributes describes an operation to admission. name is the object's name, which the path may lack.
func (a admitter) attributes(op apiadmission.Operation, obj, old, options runtime.Object, name string, dryRun bool) apiadmission.Attributes {
	q := a.q
	namespace := q.namespace
	if q.kind.OwnNamespace {
		namespace = name // upstream takes a namespace to be in the namespace of its own name
	}
	return apiadmission.NewAttributesRecord(obj, old, q.gvk(), namespace, name, q.gvr(), q.subresource(), op, options, dryRun, q.who)
}

// mutate lets admission change the object. Afterwards the reinvocation context of the attributes
// tells whether a webhook did so.
func (a admitter) mutate(ctx context.Context, what apiadmission.Attributes) error {
	m, ok := a.q.admission.(apiadmission.MutationInterface)
	if !ok || !m.Handles(what.GetOperation()) {
		return nil
	}
	defer a.q.warn.AskAdmission()()
	if what.GetObject() == nil {
		return inTime(ctx, m.Admit(ctx, what, a))
	}
	object, err := meta.Accessor(what.GetObject())
	if err != nil {
		return inTime(ctx, m.Admit(ctx, what, a))
	}
	before := object.GetManagedFields()
	if err := inTime(ctx, m.Admit(ctx, what, a)); err != nil {
		return err
	}
	a.keepFieldsValid(object, before)
	return nil
}

// keepFieldsValid restores the managed fields if admission has made them unreadable.
func (a admitter) keepFieldsValid(object metav1.Object, before []metav1.ManagedFieldsEntry) {
	after := object.GetManagedFields()
	if sameFields(before, after) {
		return
	}
	if err := managedfields.ValidateManagedFields(after); err != nil {
		object.SetManagedFields(before)
		a.q.warn.AddWarning("", fmt.Sprintf(fieldmanager.InvalidManagedFieldsAfterMutatingAdmissionWarningFormat, err.Error()))
	}
}

// handles tells whether admission has a say in op.
func (a admitter) handles(op apiadmission.Operation) bool {
	return a.q.admission != nil && a.q.admission.Handles(op)
}

// validate lets admission refuse the finished object.
func (a admitter) validate(ctx context.Context, what apiadmission.Attributes) error {
	v, ok := a.q.admission.(apiadmission.ValidationInterface)
	if !ok || !v.Handles(what.GetOperation()) {
		return nil
	}
	defer a.q.warn.AskAdmission()()
	return inTime(ctx, v.Validate(ctx, what, a))
}

// inTime returns admission's error. If the request's time is over it returns that instead, so
// that nothing is stored even if the failure of a webhook is to be ignored.
func inTime(ctx context.Context, err error) error {
	if over := ctx.Err(); over != nil {
		return over
	}
	return err
}

// validateUpdate is validate for an update. If a subresource has a body of its own, admission sees only that body.
func (a admitter) validateUpdate(ctx context.Context, obj, old, options runtime.Object, dry bool) (err error) {
	if !a.handles(apiadmission.Update) {
		return nil
	}
	if a.q.hasView() {
		if obj, err = a.q.bareView(obj); err != nil {
			return err
		}
		if old, err = a.q.bareView(old); err != nil {
			return err
		}
	}
	return a.validate(ctx, a.attributes(apiadmission.Update, obj, old, options, a.q.name, dry))
}

// bareView is a subresource's view of an object without managed fields.
func (t *target) bareView(obj runtime.Object) (runtime.Object, error) {
	view, err := t.ownedView(obj)
	if err != nil {
		return nil, err
	}
	if m, err := meta.Accessor(view); err == nil {
		m.SetManagedFields(nil)
	}
	return view, nil
}

// connect asks admission about a connection.
func (a admitter) connect(ctx context.Context, options runtime.Object) error {
	if !a.handles(apiadmission.Connect) {
		return nil
	}
	for _, ask := range []func(context.Context, apiadmission.Attributes) error{a.mutate, a.validate} {
		if err := ask(ctx, a.attributes(apiadmission.Connect, options, nil, nil, a.q.name, false)); err != nil {
			return err
		}
	}
	return nil
}
