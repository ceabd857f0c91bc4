package rest

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apirest "k8s.io/apiserver/pkg/registry/rest"

	"github.com/plinth-io/plinth/server/kind"
)

// fewErrors returns errs, or the first of them and how many there were. Upstream names all of them and
// joins their texts at a cost that grows with the square of their number: a body of 3 MiB with a million
// of them, each of three bytes, would have kept a processor busy for days. Some have a whole list in their
// text: three hundred owners, of which only one may be the controller, made 28 MB.
func fewErrors(errs field.ErrorList) field.ErrorList {
	size := 0
	for i, err := range errs {
		if i == kind.MostErrors || size > kind.MostErrorBytes {
			return append(errs[:i:i], field.TooMany(field.NewPath("errors"), len(errs), i))
		}
		if len(errs) > 1 {
			size += len(err.Error())
		}
	}
	return errs
}

// checkMeta refuses metadata that have more errors than that. Upstream's rules look at metadata outside of strategies,
// and name all errors of what passes here.
func (t *target) checkMeta(obj runtime.Object) error {
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	if len(m.GetLabels())+len(m.GetAnnotations())+len(m.GetFinalizers()) < kind.MostErrors/4 && len(m.GetOwnerReferences()) < 8 {
		return nil // each has a few errors at most, with itself in their texts, or all owners
	}
	path := field.NewPath("metadata")
	errs := metav1validation.ValidateLabels(m.GetLabels(), path.Child("labels"))
	errs = append(errs, validation.ValidateAnnotations(m.GetAnnotations(), path.Child("annotations"))...)
	errs = append(errs, validation.ValidateOwnerReferences(m.GetOwnerReferences(), path.Child("ownerReferences"))...)
	errs = append(errs, validation.ValidateFinalizers(m.GetFinalizers(), path.Child("finalizers"))...)
	few := fewErrors(errs)
	if len(few) == len(errs) {
		return nil
	}
	return apierrors.NewInvalid(t.gvk().GroupKind(), m.GetName(), few)
}

// createFewErrors is a strategy whose validation returns few errors.
type createFewErrors struct {
	apirest.RESTCreateStrategy
	declared
}

func (t *target) createFewErrors() createFewErrors {
	return createFewErrors{t.kind.Create, declared{t.kind.Create, t}}
}

func (s createFewErrors) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	return fewErrors(s.RESTCreateStrategy.Validate(ctx, obj))
}

// updateFewErrors does the same for updates.
type updateFewErrors struct {
	apirest.RESTUpdateStrategy
	declared
}

func (t *target) updateFewErrors() updateFewErrors {
	s := t.strategy()
	return updateFewErrors{s, declared{s, t}}
}

func (s updateFewErrors) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return fewErrors(s.RESTUpdateStrategy.ValidateUpdate(ctx, obj, old))
}
