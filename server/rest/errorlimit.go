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

// checkMeta refuses metadata with more errors than an answer names (kind.LimitErrors). Upstream checks metadata outside
// of strategies, and names all errors of what passes here.
func (t *target) checkMeta(obj runtime.Object) error {
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	if len(m.GetLabels())+len(m.GetAnnotations())+len(m.GetFinalizers()) < kind.MostErrors/4 && len(m.GetOwnerReferences()) < 8 {
		return nil // each item has a few errors at most, whose texts contain the item or all owners
	}
	path := field.NewPath("metadata")
	errs := metav1validation.ValidateLabels(m.GetLabels(), path.Child("labels"))
	errs = append(errs, validation.ValidateAnnotations(m.GetAnnotations(), path.Child("annotations"))...)
	errs = append(errs, validation.ValidateOwnerReferences(m.GetOwnerReferences(), path.Child("ownerReferences"))...)
	errs = append(errs, validation.ValidateFinalizers(m.GetFinalizers(), path.Child("finalizers"))...)
	few := kind.LimitErrors(errs)
	if len(few) == len(errs) {
		return nil
	}
	return apierrors.NewInvalid(t.gvk().GroupKind(), m.GetName(), few)
}

// limitedCreate is a strategy whose validation returns no more errors than an answer names.
type limitedCreate struct {
	apirest.RESTCreateStrategy
	declared
}

func (t *target) limitedCreate() limitedCreate {
	return limitedCreate{t.kind.Create, declared{t.kind.Create, t}}
}

func (s limitedCreate) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	return kind.LimitErrors(s.RESTCreateStrategy.Validate(ctx, obj))
}

// limitedUpdate does the same for updates.
type limitedUpdate struct {
	apirest.RESTUpdateStrategy
	declared
}

func (t *target) limitedUpdate() limitedUpdate {
	s := t.strategy()
	return limitedUpdate{s, declared{s, t}}
}

func (s limitedUpdate) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return kind.LimitErrors(s.RESTUpdateStrategy.ValidateUpdate(ctx, obj, old))
}
