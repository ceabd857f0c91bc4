package builtin

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apirest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/authorization"

	"github.com/plinth-io/plinth/server/kind"
)

// review completes the Kind of a review. A review is a question: it is created, answered and
// never stored.
func review(k kind.Kind, answer apirest.Creater) *kind.Kind {
	k.Verbs = []string{"create"}
	k.Virtual = answer
	return &k
}

// mostRequirements is how many requirements a selector in a review may have. Upstream joins the errors of all of
// them at a cost that grows with the square of their number: 20,000, in 60 KB, take a minute, and everybody who
// is authenticated may ask for a review of his own rights.
const mostRequirements = 1000

// boundedReview answers reviews whose selectors are not too long.
type boundedReview struct{ apirest.Creater }

// Create implements apirest.Creater.
func (r boundedReview) Create(ctx context.Context, obj runtime.Object, validate apirest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	kind, attributes := "", (*authorization.ResourceAttributes)(nil)
	switch review := obj.(type) {
	case *authorization.SubjectAccessReview:
		kind, attributes = "SubjectAccessReview", review.Spec.ResourceAttributes
	case *authorization.LocalSubjectAccessReview:
		kind, attributes = "LocalSubjectAccessReview", review.Spec.ResourceAttributes
	case *authorization.SelfSubjectAccessReview:
		kind, attributes = "SelfSubjectAccessReview", review.Spec.ResourceAttributes
	}
	if errs := tooManyRequirements(attributes); len(errs) > 0 {
		return nil, apierrors.NewInvalid(authorization.Kind(kind), "", errs)
	}
	return r.Creater.Create(ctx, obj, validate, options)
}

func tooManyRequirements(a *authorization.ResourceAttributes) (errs field.ErrorList) {
	if a == nil {
		return nil
	}
	path := field.NewPath("spec", "resourceAttributes")
	if s := a.LabelSelector; s != nil && len(s.Requirements) > mostRequirements {
		errs = append(errs, field.TooMany(path.Child("labelSelector", "requirements"), len(s.Requirements), mostRequirements))
	}
	if s := a.FieldSelector; s != nil && len(s.Requirements) > mostRequirements {
		errs = append(errs, field.TooMany(path.Child("fieldSelector", "requirements"), len(s.Requirements), mostRequirements))
	}
	return errs
}
