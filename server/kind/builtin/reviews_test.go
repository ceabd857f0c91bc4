package builtin_test

import (
	"context"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/request"
	apirest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/authentication"
	"k8s.io/kubernetes/pkg/apis/authorization"

	"github.com/plinth-io/plinth/server/kind/builtin"
)

// as is the context of a request for a review.
func as(name, group string) context.Context {
	ctx := request.WithRequestInfo(context.Background(), &request.RequestInfo{APIGroup: group, APIVersion: "v1"})
	return request.WithUser(ctx, &user.DefaultInfo{Name: name, Groups: []string{"people"}})
}

func TestReviews(t *testing.T) {
	yes := authorizerfactory.NewAlwaysAllowAuthorizer()
	tokens := authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		ok := r.Header.Get("Authorization") == "Bearer secret"
		return &authenticator.Response{User: &user.DefaultInfo{Name: "robot"}}, ok, nil
	})
	answer := func(o builtin.Options, resource string, obj runtime.Object) runtime.Object {
		t.Helper()
		for _, k := range builtin.Kinds(o) {
			if k.Resource == resource {
				out, err := k.Virtual.Create(as("ann", k.Group), obj, apirest.ValidateAllObjectFunc, &metav1.CreateOptions{})
				if err != nil {
					t.Fatalf("%s: %v", resource, err)
				}
				return out
			}
		}
		t.Fatalf("no %s", resource)
		return nil
	}
	question := authorization.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorization.ResourceAttributes{Verb: "get", Resource: "pods"}}
	review := answer(builtin.Options{Authorizer: yes}, "selfsubjectaccessreviews", &authorization.SelfSubjectAccessReview{Spec: question})
	if !review.(*authorization.SelfSubjectAccessReview).Status.Allowed {
		t.Error("not allowed by an authorizer that allows everything")
	}
	review = answer(builtin.Options{}, "selfsubjectaccessreviews", &authorization.SelfSubjectAccessReview{Spec: question})
	if review.(*authorization.SelfSubjectAccessReview).Status.Allowed {
		t.Error("allowed without an authorizer")
	}
	rules := answer(builtin.Options{Rules: yes}, "selfsubjectrulesreviews", &authorization.SelfSubjectRulesReview{Spec: authorization.SelfSubjectRulesReviewSpec{Namespace: "default"}})
	if got := rules.(*authorization.SelfSubjectRulesReview).Status.ResourceRules; len(got) != 1 || got[0].Verbs[0] != "*" {
		t.Errorf("rules %+v", got)
	}
	self := answer(builtin.Options{}, "selfsubjectreviews", &authentication.SelfSubjectReview{})
	if got := self.(*authentication.SelfSubjectReview).Status.UserInfo; got.Username != "ann" || got.Groups[0] != "people" {
		t.Errorf("self %+v", got)
	}
	for token, want := range map[string]bool{"secret": true, "guess": false} {
		out := answer(builtin.Options{Authenticator: tokens}, "tokenreviews", &authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: token}})
		if got := out.(*authentication.TokenReview).Status; got.Authenticated != want {
			t.Errorf("token %s: %+v", token, got)
		}
	}
}
