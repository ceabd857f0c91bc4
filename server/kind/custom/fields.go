package custom

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/plinth-io/plinth/server/kind"
)

// resets are the fields of each version that a write resets, so that the writer does not come to own them.
type resets map[fieldpath.APIVersion]*fieldpath.Set

// statusResets are the resets of writes through /status, of all versions that have it: the managed fields of an
// object may be of any of them.
func statusResets(crd *apiextensionsv1.CustomResourceDefinition) resets {
	all := resets{}
	for _, v := range crd.Spec.Versions {
		if (v.Served || v.Storage) && v.Subresources != nil && v.Subresources.Status != nil {
			version := schema.GroupVersion{Group: crd.Spec.Group, Version: v.Name}.String()
			all[fieldpath.APIVersion(version)] = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec"))
		}
	}
	return all
}

// newFieldManager returns the field manager of writes of gvk.
func newFieldManager(ctx context.Context, u *use, gvk schema.GroupVersionKind, hub schema.GroupVersion, subresource string, reset resets) (*kind.FieldManager, error) {
	filter := fieldpath.NewExcludeFilterSetMap(reset)
	types, converter := topology{u}, lateConverter{ctx, u}
	m, err := managedfields.NewDefaultCRDFieldManager(types, converter, lateDefaulter{u}, creater{}, gvk, hub, subresource, filter)
	if err != nil {
		return nil, err
	}
	return &kind.FieldManager{
		FieldManager: m, Types: types, Converter: converter, Version: gvk.GroupVersion(), Subresource: subresource,
		Resets: filter[fieldpath.APIVersion(gvk.GroupVersion().String())],
	}, nil
}

// topology is the managedfields.TypeConverter of a definition: it knows which lists are sets
// or maps. It is made at the first write.
type topology struct{ u *use }

func (t topology) ObjectToTyped(obj runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	c, err := t.u.topology()
	if err != nil {
		return nil, err
	}
	return c.ObjectToTyped(obj, options...)
}

func (t topology) TypedToObject(v *typed.TypedValue) (runtime.Object, error) {
	c, err := t.u.topology()
	if err != nil {
		return nil, err
	}
	return c.TypedToObject(v)
}

// newTopology makes a TypeConverter of the definition's published OpenAPI schemas. If they cannot
// be made, the structure is deduced from the objects, as upstream does.
func newTopology(source Source) (managedfields.TypeConverter, error) {
	crd, err := source.whole()
	if err != nil {
		return nil, err
	}
	models, err := newModels(crd)
	if err != nil {
		utilruntime.HandleError(fmt.Errorf("building the OpenAPI models of %s: %w", crd.Name, err))
		return managedfields.NewDeducedTypeConverter(), nil
	}
	return managedfields.NewTypeConverter(models, crd.Spec.PreserveUnknownFields)
}

// newModels are the schemas of all versions, and those that they refer to.
func newModels(crd *apiextensionsv1.CustomResourceDefinition) (map[string]*spec.Schema, error) {
	var specs []*spec3.OpenAPI
	for _, v := range crd.Spec.Versions {
		s, err := builder.BuildOpenAPIV3(crd, v.Name, builder.Options{})
		if err != nil {
			return nil, fmt.Errorf("build OpenAPI of version %s: %w", v.Name, err)
		}
		specs = append(specs, s)
	}
	merged, err := builder.MergeSpecsV3(specs...)
	if err != nil {
		return nil, err
	}
	return merged.Components.Schemas, nil
}

// lateConverter converts between a definition's versions.
type lateConverter struct {
	ctx context.Context
	u   *use
}

// Convert converts in to the version of out.
func (c lateConverter) Convert(in, out, context any) error {
	from, ok1 := in.(*unstructured.Unstructured)
	to, ok2 := out.(*unstructured.Unstructured)
	if !ok1 || !ok2 {
		return fmt.Errorf("%T is not converted to %T", in, out)
	}
	obj, err := c.ConvertToVersion(from, to.GroupVersionKind().GroupVersion())
	if err != nil {
		return err
	}
	converted, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("conversion to %s gave a %T", to.GroupVersionKind(), obj)
	}
	to.SetUnstructuredContent(converted.UnstructuredContent())
	return nil
}

func (c lateConverter) ConvertToVersion(in runtime.Object, gv runtime.GroupVersioner) (runtime.Object, error) {
	s, err := c.u.serving()
	if err != nil {
		return nil, err
	}
	return s.convert.to(c.ctx, in, gv)
}

func (c lateConverter) ConvertFieldLabel(gvk schema.GroupVersionKind, label, value string) (string, string, error) {
	return "", "", fmt.Errorf("field label not supported: %s", label)
}

// lateDefaulter fills in the defaults of an object's version. An object that would be too long
// with its defaults gets none, and is refused when it is encoded.
type lateDefaulter struct{ u *use }

func (d lateDefaulter) Default(in runtime.Object) {
	switch in := in.(type) {
	case *unstructured.Unstructured:
		if s, err := d.u.serving(); err == nil {
			_ = s.schemas.fill(in)
		}
	case *autoscalingv1.Scale:
		scheme.Scheme.Default(in)
	}
}
