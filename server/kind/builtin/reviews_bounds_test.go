package builtin

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apirest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/authorization"
)

// asked counts the reviews that it answers.
type asked struct{ n int }

func (a *asked) New() runtime.Object { return nil }

func (a *asked) Create(context.Context, runtime.Object, apirest.ValidateObjectFunc, *metav1.CreateOptions) (runtime.Object, error) {
	a.n++
	return nil, nil
}

// TestReviewBounds asks for reviews with selectors that are as long as may be, and longer.
func TestReviewBounds(t *testing.T) {
	for n, answered := range map[int]int{mostRequirements: 6, mostRequirements + 1: 0} {
		labels := &authorization.ResourceAttributes{LabelSelector: &authorization.LabelSelectorAttributes{Requirements: make([]metav1.LabelSelectorRequirement, n)}}
		fields := &authorization.ResourceAttributes{FieldSelector: &authorization.FieldSelectorAttributes{Requirements: make([]metav1.FieldSelectorRequirement, n)}}
		a := &asked{}
		for _, attributes := range []*authorization.ResourceAttributes{labels, fields} {
			for _, review := range []runtime.Object{
				&authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{ResourceAttributes: attributes}},
				&authorization.LocalSubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{ResourceAttributes: attributes}},
				&authorization.SelfSubjectAccessReview{Spec: authorization.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes}},
			} {
				_, err := boundedReview{a}.Create(t.Context(), review, nil, nil)
				if answered == 0 && !apierrors.IsInvalid(err) || answered > 0 && err != nil {
					t.Errorf("%T with %d requirements: %v", review, n, err)
				}
			}
		}
		if a.n != answered {
			t.Errorf("with %d requirements %d reviews were answered, want %d", n, a.n, answered)
		}
	}
}
