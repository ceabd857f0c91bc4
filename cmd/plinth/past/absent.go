package past

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// notThere returns the error for an object that was not there at a moment, or that the caller may not
// get: the history does not tell these from each other.
func (h *History) notThere(ctx context.Context, t Target, m Moment) error {
	if err := h.MayGet(ctx, t); err != nil {
		return err
	}
	newest, err := first(h.Changes(ctx, Query{Limit: 1}.ToObject(t)))
	switch {
	case err != nil:
		return err
	case newest == nil:
		return h.unknown(ctx, t)
	case m.IsNow():
		return fmt.Errorf("%s is not there; plinth log %s shows when it was", t, t.words())
	}
	return fmt.Errorf("%s was not there at %s; plinth log %s shows when it was", t, m, t.words())
}

// unknown returns the error for an object that is not there and of which no change is kept.
func (h *History) unknown(ctx context.Context, t Target) error {
	if err := h.MayGet(ctx, t); err != nil {
		return err
	}
	return fmt.Errorf("%s is not there, and no change of it is kept; if it is another name or namespace, plinth trash %s -A lists what was deleted%s", t, t.Kind.Name(), h.because())
}

// MayGet returns an error if nothing was found because the caller may not get the objects of a type, or
// the one that is named. If the server does not say what the caller may do, there is no error.
func (h *History) MayGet(ctx context.Context, t Target) error {
	if t.Kind.Name() == "" {
		return nil
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "get", Group: t.Kind.Resource.Group, Resource: t.Kind.Resource.Resource, Namespace: t.Namespace, Name: t.Name,
		},
	}}
	review.SetGroupVersionKind(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"))
	answer := new(authorizationv1.SelfSubjectAccessReview)
	err := h.server.rest.Post().AbsPath("apis", authorizationv1.GroupName, "v1", "selfsubjectaccessreviews").Body(review).Do(ctx).Into(answer)
	if err != nil || answer.Status.Allowed {
		return nil
	}
	what := t.Kind.Name()
	if t.Name != "" {
		what = t.String()
	}
	if t.Namespace != "" {
		what += " in the namespace " + t.Namespace
	}
	return fmt.Errorf("forbidden: you may not get %s, so you do not see its history either; ask for that right", what)
}
