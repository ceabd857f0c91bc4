package custom

import (
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	apirest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
)

// serving is a compiled definition: what requests need beyond its names.
type serving struct {
	schemas  schemas
	versions map[string]*version
	convert  *converter
}

// version is a compiled version of a definition.
type version struct {
	create apirest.RESTCreateStrategy
	update func() strategies // compiles the rules once more, at the first update
	attrs  storage.AttrFunc
	table  apirest.TableConvertor
}

// newServing compiles a definition. A definition that passed its own validation does not fail
// here.
func newServing(source Source, converters *Converters) (*serving, error) {
	crd, err := source.whole()
	if err != nil {
		return nil, err
	}
	s := &serving{versions: map[string]*version{}}
	if s.schemas, err = newSchemas(crd); err != nil {
		return nil, err
	}
	if s.convert, err = converters.of(crd); err != nil {
		return nil, err
	}
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if !v.Served && !v.Storage {
			continue
		}
		if s.versions[v.Name], err = newVersion(crd, v, s.schemas.byVersion[v.Name]); err != nil {
			return nil, fmt.Errorf("version %s of %s: %w", v.Name, crd.Name, err)
		}
	}
	return s, nil
}

// newSchemas makes the structural schema of every version. Its defaults are themselves
// complete and pruned.
func newSchemas(crd *apiextensionsv1.CustomResourceDefinition) (schemas, error) {
	s := schemas{group: crd.Spec.Group, kind: crd.Status.AcceptedNames.Kind,
		preserveUnknown: crd.Spec.PreserveUnknownFields, byVersion: map[string]*structuralschema.Structural{},
		outlines: map[string]*outline{}, growing: map[string]bool{}}
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		internal, err := internalSchema(v)
		if err != nil {
			return s, err
		}
		if internal == nil {
			continue
		}
		structural, err := structuralschema.NewStructural(internal)
		if crd.Spec.PreserveUnknownFields {
			s.byVersion[v.Name] = structural
			continue
		}
		if err != nil {
			return s, fmt.Errorf("schema of version %s: %w", v.Name, err)
		}
		structural = structural.DeepCopy()
		if err := defaulting.PruneDefaults(structural); err != nil {
			return s, fmt.Errorf("defaults of version %s: %w", v.Name, err)
		}
		s.byVersion[v.Name], s.outlines[v.Name] = structural, newOutline(structural)
		s.growing[v.Name] = growing(structural, false)
	}
	return s, nil
}

func internalSchema(v *apiextensionsv1.CustomResourceDefinitionVersion) (*apiextensions.JSONSchemaProps, error) {
	if v.Schema == nil {
		return nil, nil
	}
	internal := &apiextensions.CustomResourceValidation{}
	err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(v.Schema, internal, nil)
	return internal.OpenAPIV3Schema, err
}

func newVersion(crd *apiextensionsv1.CustomResourceDefinition, v *apiextensionsv1.CustomResourceDefinitionVersion, structural *structuralschema.Structural) (*version, error) {
	internal, err := internalSchema(v)
	if err != nil {
		return nil, err
	}
	validator, err := newValues(internal)
	if err != nil {
		return nil, err
	}
	sub, err := internalSubresources(v)
	if err != nil {
		return nil, err
	}
	statusValidator, err := newStatusValidator(internal, sub.Status)
	if err != nil {
		return nil, err
	}
	strategy := func(structural *structuralschema.Structural) strategies {
		s := customresource.NewStrategy(typer, crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
			gvkOf(crd, v.Name), validator, statusValidator, structural, sub.Status, sub.Scale, v.SelectableFields)
		return strategies{s, s, s.GetAttrs, customresource.NewStatusStrategy(s)}
	}
	values := strategy(nil)
	return &version{
		create: newCreation(values.create, structural),
		update: sync.OnceValue(func() strategies { return strategy(structural) }),
		attrs:  values.attrs, table: newColumns(v),
	}, nil
}

// strategies are upstream's strategies, whose type is not exported.
type strategies struct {
	create apirest.RESTCreateStrategy
	update apirest.RESTUpdateStrategy
	attrs  storage.AttrFunc
	status apirest.RESTUpdateStrategy
}

func internalSubresources(v *apiextensionsv1.CustomResourceDefinitionVersion) (*apiextensions.CustomResourceSubresources, error) {
	internal := &apiextensions.CustomResourceSubresources{}
	if v.Subresources == nil {
		return internal, nil
	}
	err := apiextensionsv1.Convert_v1_CustomResourceSubresources_To_apiextensions_CustomResourceSubresources(v.Subresources, internal, nil)
	return internal, err
}

// newStatusValidator returns the validator of writes through /status; nil without that
// subresource or without a schema for it.
func newStatusValidator(schema *apiextensions.JSONSchemaProps, status *apiextensions.CustomResourceSubresourceStatus) (validation.SchemaValidator, error) {
	if status == nil || schema == nil {
		return nil, nil
	}
	of, ok := schema.Properties["status"]
	if !ok {
		return nil, nil
	}
	return newValues(&of)
}

// storageVersion is the storage version; validation ensures that there is exactly one.
func storageVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	name, _ := apihelpers.GetCRDStorageVersion(crd)
	return name
}
