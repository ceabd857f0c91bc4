package builtin

import (
	"context"
	"errors"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apirest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	"k8s.io/kubernetes/pkg/apis/autoscaling/validation"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/plinth-io/plinth/server/kind"
)

// scaled are the parts of an object that a Scale shows, and a function that sets the replicas.
type scaled struct {
	meta     *metav1.ObjectMeta
	replicas int32
	set      func(replicas int32)
	observed int32
	selector labels.Selector
}

// scale is the subresource through which autoscalers and kubectl scale change only the number of
// replicas. of returns the parts of an object.
func scale(resource schema.GroupResource, update apirest.RESTUpdateStrategy, of func(runtime.Object) (scaled, error)) *kind.Subresource {
	return scaleAs(autoscalingv1.SchemeGroupVersion.WithKind("Scale"), resource, update, of)
}

// scaleAs does what scale does, with bodies of kind gvk.
func scaleAs(gvk schema.GroupVersionKind, resource schema.GroupResource, update apirest.RESTUpdateStrategy, of func(runtime.Object) (scaled, error)) *kind.Subresource {
	return &kind.Subresource{
		Name:   "scale",
		Verbs:  []string{"get", "patch", "update"},
		GVK:    gvk,
		Update: update,
		New:    func() runtime.Object { return &autoscaling.Scale{} },
		Codec:  newCodec(legacyscheme.Scheme, gvk.Group, gvk.Kind, gvk),
		View:   func(obj runtime.Object) (runtime.Object, error) { return viewScale(obj, of) },
		Own: func(version string, obj runtime.Object) (runtime.Object, error) {
			body, err := viewScale(obj, of)
			if err != nil {
				return nil, err
			}
			return body, ownScale(resource.Group, version, obj, body)
		},
		Apply: func(ctx context.Context, version string, obj, body runtime.Object) error {
			if err := applyScale(ctx, resource, obj, body, of); err != nil {
				return err
			}
			return disownScale(resource.Group, version, obj, body)
		},
	}
}

func viewScale(obj runtime.Object, of func(runtime.Object) (scaled, error)) (runtime.Object, error) {
	s, err := of(obj)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return &autoscaling.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name:              s.meta.Name,
			Namespace:         s.meta.Namespace,
			UID:               s.meta.UID,
			ResourceVersion:   s.meta.ResourceVersion,
			CreationTimestamp: s.meta.CreationTimestamp,
		},
		Spec:   autoscaling.ScaleSpec{Replicas: s.replicas},
		Status: autoscaling.ScaleStatus{Replicas: s.observed, Selector: s.selector.String()},
	}, nil
}

// applyScale validates body and copies its replicas and resourceVersion into obj.
func applyScale(ctx context.Context, resource schema.GroupResource, obj, body runtime.Object, of func(runtime.Object) (scaled, error)) error {
	scale, ok := body.(*autoscaling.Scale)
	if !ok {
		return apierrors.NewBadRequest(fmt.Sprintf("expected a Scale, got %T", body))
	}
	s, err := of(obj)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	old, err := viewScale(obj, of)
	if err != nil {
		return err
	}
	if errs := validation.ValidateScaleUpdate(ctx, scale, old.(*autoscaling.Scale), legacyscheme.Scheme, asScale{}); len(errs) > 0 {
		return apierrors.NewInvalid(autoscaling.Kind("Scale"), s.meta.Name, errs)
	}
	if scale.UID != "" && scale.UID != s.meta.UID {
		return apierrors.NewConflict(
			schema.GroupResource{Group: resource.Group, Resource: resource.Resource + "/scale"}, s.meta.Name,
			errors.New("Precondition failed: UID in precondition: "+string(scale.UID)+", UID in object meta: "+string(s.meta.UID)))
	}
	s.set(scale.Spec.Replicas)
	s.meta.ResourceVersion = scale.ResourceVersion
	return nil
}

// asScale says that a Scale is validated in its own version, not in that of the scaled object.
type asScale struct{}

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (asScale) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return autoscalingv1.SchemeGroupVersion.WithKind("Scale")
}

// scaledBy are the functions for resources that had a Scale in removed versions.
var scaledBy = map[schema.GroupResource]func(runtime.Object) (scaled, error){
	apps.Resource("deployments"):  scaledDeployment,
	apps.Resource("replicasets"):  scaledReplicaSet,
	apps.Resource("statefulsets"): scaledStatefulSet,
}

func scaledDeployment(obj runtime.Object) (scaled, error) {
	d := obj.(*apps.Deployment)
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	set := func(n int32) { d.Spec.Replicas = n }
	return scaled{&d.ObjectMeta, d.Spec.Replicas, set, d.Status.Replicas, selector}, err
}

func scaledReplicaSet(obj runtime.Object) (scaled, error) {
	r := obj.(*apps.ReplicaSet)
	selector, err := metav1.LabelSelectorAsSelector(r.Spec.Selector)
	set := func(n int32) { r.Spec.Replicas = n }
	return scaled{&r.ObjectMeta, r.Spec.Replicas, set, r.Status.Replicas, selector}, err
}

func scaledStatefulSet(obj runtime.Object) (scaled, error) {
	s := obj.(*apps.StatefulSet)
	selector, err := metav1.LabelSelectorAsSelector(s.Spec.Selector)
	set := func(n int32) { s.Spec.Replicas = n }
	return scaled{&s.ObjectMeta, s.Spec.Replicas, set, s.Status.Replicas, selector}, err
}

// scaledController never writes through the pointer to replicas, which an older copy of the
// object may share.
func scaledController(obj runtime.Object) (scaled, error) {
	r := obj.(*core.ReplicationController)
	var replicas int32
	if r.Spec.Replicas != nil {
		replicas = *r.Spec.Replicas
	}
	set := func(n int32) { r.Spec.Replicas = &n }
	return scaled{&r.ObjectMeta, replicas, set, r.Status.Replicas, labels.SelectorFromSet(r.Spec.Selector)}, nil
}
