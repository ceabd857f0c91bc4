package custom

import (
	"context"
	"fmt"
	"math"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/plinth-io/plinth/server/kind"
)

var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// scale is the subresource through which autoscalers read and change the number of replicas
// of an object, at the paths that the definition names.
type scale struct {
	spec, status, selector []string // selector is nil if there is none
	paths                  *apiextensionsv1.CustomResourceSubresourceScale
	mapping                managedfields.ResourcePathMappings
}

// replicasPaths maps each version of a definition to the path of its replicas, to translate
// managed fields.
func replicasPaths(crd *apiextensionsv1.CustomResourceDefinition) managedfields.ResourcePathMappings {
	paths := managedfields.ResourcePathMappings{}
	for _, v := range crd.Spec.Versions {
		var path fieldpath.Path
		if v.Subresources != nil && v.Subresources.Scale != nil {
			for _, name := range splitPath(v.Subresources.Scale.SpecReplicasPath) {
				path = append(path, fieldpath.PathElement{FieldName: &name})
			}
		}
		paths[schema.GroupVersion{Group: crd.Spec.Group, Version: v.Name}.String()] = path
	}
	return paths
}

func splitPath(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

func newScale(paths *apiextensionsv1.CustomResourceSubresourceScale, mapping managedfields.ResourcePathMappings) *scale {
	s := &scale{spec: splitPath(paths.SpecReplicasPath), status: splitPath(paths.StatusReplicasPath), paths: paths, mapping: mapping}
	if paths.LabelSelectorPath != nil && *paths.LabelSelectorPath != "" {
		s.selector = splitPath(*paths.LabelSelectorPath)
	}
	return s
}

// subresource is the subresource of a Kind with the strategies r.
func (s *scale) subresource(r rules, group string) *kind.Subresource {
	return &kind.Subresource{
		Name: "scale", Verbs: subresourceVerbs, GVK: scaleKind, Update: r,
		New:   func() runtime.Object { return &autoscalingv1.Scale{} },
		Codec: scaleCodec{}, Table: scaleColumns(s.paths),
		View: s.view,
		Own: func(version string, obj runtime.Object) (runtime.Object, error) {
			return s.own(schema.GroupVersion{Group: group, Version: version}, obj.(*unstructured.Unstructured))
		},
		Apply: func(_ context.Context, version string, obj, body runtime.Object) error {
			gv := schema.GroupVersion{Group: group, Version: version}
			return s.apply(gv, obj.(*unstructured.Unstructured), body.(*autoscalingv1.Scale))
		},
	}
}

// view is the body of a get.
func (s *scale) view(obj runtime.Object) (runtime.Object, error) {
	body, found, err := s.of(obj.(*unstructured.Unstructured))
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, apierrors.NewInternalError(fmt.Errorf("the spec replicas field %q does not exist", s.paths.SpecReplicasPath))
	}
	return body, nil
}

// of makes the Scale of an object; found reports whether the object sets the replicas.
func (s *scale) of(u *unstructured.Unstructured) (body *autoscalingv1.Scale, found bool, err error) {
	wanted, found, err := unstructured.NestedInt64(u.Object, s.spec...)
	if err != nil {
		return nil, false, err
	}
	observed, _, err := unstructured.NestedInt64(u.Object, s.status...)
	if err != nil {
		return nil, false, err
	}
	selector := ""
	if s.selector != nil {
		if selector, _, err = unstructured.NestedString(u.Object, s.selector...); err != nil {
			return nil, false, err
		}
	}
	body = &autoscalingv1.Scale{
		TypeMeta: metav1.TypeMeta{Kind: scaleKind.Kind, APIVersion: autoscalingv1.SchemeGroupVersion.String()},
		ObjectMeta: metav1.ObjectMeta{
			Name: u.GetName(), Namespace: u.GetNamespace(), UID: u.GetUID(),
			ResourceVersion: u.GetResourceVersion(), CreationTimestamp: u.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: int32(wanted)},
		Status: autoscalingv1.ScaleStatus{Replicas: int32(observed), Selector: selector},
	}
	return body, found, nil
}

// unset stands for missing replicas in a Scale that is about to be changed. A patch that
// leaves it unchanged writes no replicas.
const unset = math.MinInt32

// own is kind.Subresource.Own.
func (s *scale) own(gv schema.GroupVersion, u *unstructured.Unstructured) (runtime.Object, error) {
	body, found, err := s.of(u)
	if err != nil {
		return nil, err
	}
	if !found {
		body.Spec.Replicas = unset
	}
	body.ManagedFields, err = managedfields.NewScaleHandler(u.GetManagedFields(), gv, s.mapping).ToSubresource()
	return body, err
}

// apply writes the replicas of a changed Scale and their managers into the object.
func (s *scale) apply(gv schema.GroupVersion, u *unstructured.Unstructured, body *autoscalingv1.Scale) error {
	if body.Spec.Replicas == unset {
		return apierrors.NewBadRequest(fmt.Sprintf("the spec replicas field %q cannot be empty", s.paths.SpecReplicasPath))
	}
	if err := unstructured.SetNestedField(u.Object, int64(body.Spec.Replicas), s.spec...); err != nil {
		return err
	}
	if body.ResourceVersion != "" {
		u.SetResourceVersion(body.ResourceVersion)
	}
	entries, err := managedfields.NewScaleHandler(u.GetManagedFields(), gv, s.mapping).ToParent(body.ManagedFields)
	if err != nil {
		return err
	}
	u.SetManagedFields(entries)
	return nil
}
