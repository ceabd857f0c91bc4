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
)

// mostErrors is how many errors of validation an answer names. Upstream names all of them and joins their texts at a
// cost that grows with the square of their number: a body of 3 MiB with a million of them, each of
// three bytes, would have kept a processor busy for days.
const mostErrors = 1000

// fewErrors returns errs, or the first of them and how many there were.
func fewErrors(errs field.ErrorList) field.ErrorList {
	if len(errs) <= mostErrors {
		return errs
	}
	return append(errs[:mostErrors:mostErrors], field.TooMany(field.NewPath("errors"), len(errs), mostErrors))
}

// checkMeta refuses metadata that have more errors than that. Upstream's rules look at metadata outside of strategies,
// and name all errors of what passes here.
func (t *target) checkMeta(obj runtime.Object) error {
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	if len(m.GetLabels())+len(m.GetAnnotations())+len(m.GetOwnerReferences())+len(m.GetFinalizers()) < mostErrors/4 {
		return nil // each has a few errors at most
	}
	path := field.NewPath("metadata")
	errs := metav1validation.ValidateLabels(m.GetLabels(), path.Child("labels"))
	errs = append(errs, validation.ValidateAnnotations(m.GetAnnotations(), path.Child("annotations"))...)
	errs = append(errs, validation.ValidateOwnerReferences(m.GetOwnerReferences(), path.Child("ownerReferences"))...)
	errs = append(errs, validation.ValidateFinalizers(m.GetFinalizers(), path.Child("finalizers"))...)
	if len(errs) <= mostErrors {
		return nil
	}
	return apierrors.NewInvalid(t.gvk().GroupKind(), m.GetName(), fewErrors(errs))
}

// createFewErrors is a strategy whose validation returns few errors.
type createFewErrors struct{ apirest.RESTCreateStrategy }

func (s createFewErrors) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	return fewErrors(s.RESTCreateStrategy.Validate(ctx, obj))
}

// updateFewErrors does the same for updates.
type updateFewErrors struct{ apirest.RESTUpdateStrategy }

func (s updateFewErrors) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return fewErrors(s.RESTUpdateStrategy.ValidateUpdate(ctx, obj, old))
}
