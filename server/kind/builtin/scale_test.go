package builtin_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
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
			ctx := request.WithRequestInfo(t.Context(), &request.RequestInfo{APIGroup: c.group, APIVersion: "v1", Resource: c.resource, Subresource: "scale"})
			view, err := sub.View(obj)
			if err != nil {
				t.Fatal(err)
			}
			scale := view.(*autoscaling.Scale)
			if scale.Spec.Replicas != 3 || scale.Status.Selector != "app=a" || scale.UID != "u" {
				t.Errorf("view %+v", scale)
			}
			scale.Spec.Replicas, scale.ResourceVersion = 5, "9"
			if err := sub.Apply(ctx, "v1", obj, scale); err != nil {
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
			if err := sub.Apply(ctx, "v1", obj, scale); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.replicas") {
				t.Errorf("negative replicas: %v", err)
			}
			scale.Spec.Replicas, scale.UID = 1, "other"
			if err := sub.Apply(ctx, "v1", obj, scale); !apierrors.IsConflict(err) {
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
