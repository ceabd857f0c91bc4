package builtin_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/authentication"
	"k8s.io/kubernetes/pkg/apis/authorization"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/plinth-io/plinth/server/kind/builtin"
)

func TestScale(t *testing.T) {
	for _, c := range []struct{ group, resource, body string }{
		{"apps", "deployments", `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"a","namespace":"b","uid":"u"},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"a"}}}}`},
		{"apps", "replicasets", `{"kind":"ReplicaSet","apiVersion":"apps/v1","metadata":{"name":"a","namespace":"b","uid":"u"},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"a"}}}}`},
		{"apps", "statefulsets", `{"kind":"StatefulSet","apiVersion":"apps/v1","metadata":{"name":"a","namespace":"b","uid":"u"},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"a"}}}}`},
		{"", "replicationcontrollers", `{"kind":"ReplicationController","apiVersion":"v1","metadata":{"name":"a","namespace":"b","uid":"u"},"spec":{"replicas":3,"selector":{"app":"a"}}}`},
	} {
		t.Run(c.resource, func(t *testing.T) {
			k := find(t, c.group, c.resource)
			sub := k.Subresources["scale"]
			obj := decode(t, k, c.body)
			old := obj.DeepCopyObject()
			view, err := sub.View(obj)
			if err != nil {
				t.Fatal(err)
			}
			scale := view.(*autoscaling.Scale)
			if scale.Spec.Replicas != 3 || scale.Status.Selector != "app=a" || scale.UID != "u" {
				t.Errorf("view %+v", scale)
			}
			scale.Spec.Replicas, scale.ResourceVersion = 5, "9"
			if err := sub.Apply("v1", obj, scale); err != nil {
				t.Fatal(err)
			}
			again, err := sub.View(obj)
			if err != nil || again.(*autoscaling.Scale).Spec.Replicas != 5 || again.(*autoscaling.Scale).ResourceVersion != "9" {
				t.Errorf("after the change: %+v %v", again, err)
			}
			if cmp.Equal(old, obj) {
				t.Error("the object is the same")
			}
			scale.Spec.Replicas = -1
			if err := sub.Apply("v1", obj, scale); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.replicas") {
				t.Errorf("negative replicas: %v", err)
			}
			scale.Spec.Replicas, scale.UID = 1, "other"
			if err := sub.Apply("v1", obj, scale); !apierrors.IsConflict(err) {
				t.Errorf("another object's UID: %v", err)
			}
		})
	}
}

func TestScaleBody(t *testing.T) {
	sub := find(t, "apps", "deployments").Subresources["scale"]
	obj, gvk, err := sub.Codec.Decode([]byte(`{"kind":"Scale","apiVersion":"autoscaling/v1","spec":{"replicas":2}}`), runtime.ContentTypeJSON, sub.GVK, true)
	if err != nil || gvk != sub.GVK || obj.(*autoscaling.Scale).Spec.Replicas != 2 {
		t.Errorf("%v %v %v", obj, gvk, err)
	}
	if _, err := sub.View(&apps.Deployment{Spec: apps.DeploymentSpec{Selector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "nonsense"}},
	}}}); !apierrors.IsBadRequest(err) {
		t.Errorf("a selector that can't be read: %v", err)
	}
}

func TestNamespaceEnds(t *testing.T) {
	k := find(t, "", "namespaces")
	ns := &api.Namespace{Spec: api.NamespaceSpec{Finalizers: []api.FinalizerName{api.FinalizerKubernetes}}}
	if held := k.BeginDelete(ns); !held || ns.Status.Phase != api.NamespaceTerminating {
		t.Errorf("held %v, phase %s", held, ns.Status.Phase)
	}
	if k.Finishing(t.Context(), "", ns, ns) {
		t.Error("finished with a finalizer in its spec")
	}
	ns.Spec.Finalizers = nil
	if !k.Finishing(t.Context(), "", ns, ns) || k.BeginDelete(ns) {
		t.Error("not finished without finalizers")
	}
	ns.Finalizers = []string{"example.com/a"}
	if k.Finishing(t.Context(), "", ns, ns) {
		t.Error("finished with a finalizer in its metadata")
	}
}

func as(name string) context.Context {
	return request.WithUser(context.Background(), &user.DefaultInfo{Name: name, Groups: []string{"people"}})
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
				out, err := k.Virtual.Create(as("ann"), obj, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
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
