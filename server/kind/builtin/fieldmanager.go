package builtin

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	apirest "k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/plinth-io/plinth/server/kind"
)

// addFieldManagers adds a field manager to every version of k, and to every subresource for
// every version.
// https://kubernetes.io/docs/reference/using-api/server-side-apply/
func addFieldManagers(k *kind.Kind) {
	scheme := k.Codec.(*codec).scheme
	for i := range k.Versions {
		v := &k.Versions[i]
		v.Fields = newFieldManager(scheme, k.GVK(v.Name), "", k.Update)
		for _, sub := range k.Subresources {
			if sub.Update != nil || sub.Post != nil {
				addSubresourceFields(scheme, k, v.Name, sub)
			}
		}
	}
}

func addSubresourceFields(scheme *runtime.Scheme, k *kind.Kind, version string, sub *kind.Subresource) {
	if sub.Fields == nil {
		sub.Fields = map[string]*kind.FieldManager{}
	}
	gvk, rules := k.GVK(version), any(sub.Update)
	if !sub.GVK.Empty() {
		gvk, rules = sub.GVK, nil // the rules are for the object, not for this body
	}
	sub.Fields[version] = newFieldManager(scheme, gvk, sub.Name, rules)
}

// newFieldManager returns the field manager for writes of gvk. rules may be a strategy that
// names the fields that a write resets.
func newFieldManager(scheme *runtime.Scheme, gvk schema.GroupVersionKind, subresource string, rules any) *kind.FieldManager {
	hub := schema.GroupVersion{Group: gvk.Group, Version: runtime.APIVersionInternal}
	types, converter, resets := topologyOf(scheme, gvk.GroupKind()), runtime.UnsafeObjectConvertor(scheme), resetFields(scheme, gvk, rules)
	m, err := managedfields.NewDefaultFieldManager(types, converter, scheme, scheme, gvk, hub, subresource, resets)
	if err != nil {
		panic(err) // the only error is a missing type converter
	}
	fields := &kind.FieldManager{
		FieldManager: m, Types: types, Converter: converter, Version: gvk.GroupVersion(), Subresource: subresource,
		Resets: resets[fieldpath.APIVersion(gvk.GroupVersion().String())], Light: light(gvk, subresource),
	}
	if subresource == "" || subresource == "status" { // others reset fields by patterns
		fields.Kind, fields.Hub, fields.Defaulter = gvk.Kind, hub, scheme
	}
	return fields
}

// light is kind.FieldManager.Light. Only the status of definitions has it: it is written twice
// for each write of a definition, and the schemas in the spec are no part of it.
func light(gvk schema.GroupVersionKind, subresource string) func(runtime.Object) runtime.Object {
	if gvk.GroupKind() != apiextensions.Kind("CustomResourceDefinition") || subresource != "status" {
		return nil
	}
	return func(obj runtime.Object) runtime.Object {
		crd, ok := obj.(*apiextensions.CustomResourceDefinition)
		if !ok {
			return obj
		}
		small := *crd
		small.Spec = apiextensions.CustomResourceDefinitionSpec{}
		return &small
	}
}

// resetFields are the fields that a write resets. Upstream's strategies do not name them for
// all removed versions; there it is the whole spec or the whole status.
func resetFields(scheme *runtime.Scheme, gvk schema.GroupVersionKind, rules any) (resets map[fieldpath.APIVersion]fieldpath.Filter) {
	switch s := rules.(type) {
	case apirest.ResetFieldsStrategy:
		resets = fieldpath.NewExcludeFilterSetMap(s.GetResetFields())
	case apirest.ResetFieldsFilterStrategy:
		resets = s.GetResetFieldsFilter()
	}
	version := fieldpath.APIVersion(gvk.GroupVersion().String())
	if resets[version] == nil && len(resets) > 0 && !stillServed(scheme, gvk) {
		resets = maps.Clone(resets)
		resets[version] = resets[slices.Min(slices.Collect(maps.Keys(resets)))]
	}
	return resets
}

// topology is the managedfields.TypeConverter of one kind: it knows which lists are sets or
// maps, and which fields are atomic. Its schemas are read at the first write, because
// that takes a moment.
type topology func() managedfields.TypeConverter

func topologyOf(scheme *runtime.Scheme, kind schema.GroupKind) topology {
	if len(described[kind]) > 0 {
		return func() managedfields.TypeConverter { return describedTopology{} }
	}
	return sync.OnceValue(func() managedfields.TypeConverter { return newApplied(scheme) })
}

func (t topology) ObjectToTyped(obj runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	return t().ObjectToTyped(obj, options...)
}

func (t topology) TypedToObject(v *typed.TypedValue) (runtime.Object, error) {
	return t().TypedToObject(v)
}

// applied is a TypeConverter of the types that have apply configurations. Their schemas are
// read once per process.
type applied struct {
	managedfields.TypeConverter
	scheme *runtime.Scheme
}

func newApplied(scheme *runtime.Scheme) *applied {
	return &applied{managedfields.NewSchemeTypeConverter(scheme, parser()), scheme}
}

// ObjectToTyped does not validate an object of a Go type against its schema, because the schema
// was made from the type and validation takes longer than comparing two objects. An applied
// configuration comes from a client as it is, and is validated.
func (c *applied) ObjectToTyped(obj runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	if _, ok := obj.(runtime.Unstructured); ok {
		return c.TypeConverter.ObjectToTyped(obj, options...)
	}
	of, err := c.exampleOf(obj.GetObjectKind().GroupVersionKind())
	if err != nil {
		return nil, err
	}
	v, err := value.NewValueReflect(obj)
	if err != nil {
		return nil, err
	}
	//lint:ignore SA1019 the reason to deprecate it was that checking is cheap enough
	return typed.AsTypedUnvalidated(objectValue{v, obj}, of.Schema(), of.TypeRef()), nil
}

var examples sync.Map // schema.GroupVersionKind to *typed.TypedValue

// exampleOf is an empty object of a kind, which has the schema of all objects of the kind.
func (c *applied) exampleOf(gvk schema.GroupVersionKind) (*typed.TypedValue, error) {
	if v, ok := examples.Load(gvk); ok {
		return v.(*typed.TypedValue), nil
	}
	empty, err := c.scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	empty.GetObjectKind().SetGroupVersionKind(gvk)
	v, err := c.TypeConverter.ObjectToTyped(empty)
	if err == nil {
		examples.Store(gvk, v)
	}
	return v, err
}

// objectValue is a value with the object that it was made from.
type objectValue struct {
	value.Value
	object runtime.Object
}

// TypedToObject returns the object of an objectValue without converting. Nearly every write
// asks only for the object's version.
func (c *applied) TypedToObject(v *typed.TypedValue) (runtime.Object, error) {
	if o, ok := v.AsValue().(objectValue); ok {
		return o.object, nil
	}
	return c.TypeConverter.TypedToObject(v)
}

// described are the kinds without apply configurations, with their versions. Their schemas are those of upstream's OpenAPI
// definitions.
var described = map[schema.GroupKind][]string{
	{Group: "", Kind: "Binding"}:                                      {"v1"},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: {"v1", "v1beta1"},
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:             {"v1", "v1beta1"},
	{Group: "apps", Kind: "Scale"}:                                    {"v1beta1", "v1beta2"},
	{Group: "authentication.k8s.io", Kind: "SelfSubjectReview"}:       {"v1", "v1alpha1", "v1beta1"},
	{Group: "authentication.k8s.io", Kind: "TokenRequest"}:            {"v1"},
	{Group: "authentication.k8s.io", Kind: "TokenReview"}:             {"v1", "v1beta1"},
	{Group: "authorization.k8s.io", Kind: "LocalSubjectAccessReview"}: {"v1", "v1beta1"},
	{Group: "authorization.k8s.io", Kind: "SelfSubjectAccessReview"}:  {"v1", "v1beta1"},
	{Group: "authorization.k8s.io", Kind: "SelfSubjectRulesReview"}:   {"v1", "v1beta1"},
	{Group: "authorization.k8s.io", Kind: "SubjectAccessReview"}:      {"v1", "v1beta1"},
	{Group: "autoscaling", Kind: "Scale"}:                             {"v1"},
	{Group: "extensions", Kind: "Scale"}:                              {"v1beta1"},
}

// describedTopology is the TypeConverter of described.
type describedTopology struct{}

func (describedTopology) ObjectToTyped(obj runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	scheme := schemeOf(obj.GetObjectKind().GroupVersionKind())
	return managedfields.NewSchemeTypeConverter(scheme, describedParser()).ObjectToTyped(obj, options...)
}

func (describedTopology) TypedToObject(v *typed.TypedValue) (runtime.Object, error) {
	return managedfields.NewSchemeTypeConverter(nil, nil).TypedToObject(v) // it needs neither
}
