package builtin

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// scaleFields translates managed fields between an object and its Scale. Every scaled kind has
// its replicas at spec.replicas, in all versions.
func scaleFields(group, version string, obj metav1.Object) *managedfields.ScaleHandler {
	gv := schema.GroupVersion{Group: group, Version: version}
	paths := managedfields.ResourcePathMappings{}
	for _, v := range []string{gv.String(), "apps/v1", "apps/v1beta2", "apps/v1beta1", "extensions/v1beta1"} {
		paths[v] = fieldpath.MakePathOrDie("spec", "replicas")
	}
	return managedfields.NewScaleHandler(obj.GetManagedFields(), gv, paths)
}

// ownScale copies the managers of obj's replicas into its Scale.
func ownScale(group, version string, obj, scale runtime.Object) error {
	from, to, err := accessors(obj, scale)
	if err != nil {
		return err
	}
	entries, err := scaleFields(group, version, from).ToSubresource()
	if err != nil {
		return err
	}
	to.SetManagedFields(entries)
	return nil
}

// disownScale copies the managers of a changed Scale into obj.
func disownScale(group, version string, obj, scale runtime.Object) error {
	to, from, err := accessors(obj, scale)
	if err != nil {
		return err
	}
	entries, err := scaleFields(group, version, to).ToParent(from.GetManagedFields())
	if err != nil {
		return err
	}
	to.SetManagedFields(entries)
	return nil
}

func accessors(a, b runtime.Object) (metav1.Object, metav1.Object, error) {
	first, err := meta.Accessor(a)
	if err != nil {
		return nil, nil, err
	}
	second, err := meta.Accessor(b)
	return first, second, err
}
