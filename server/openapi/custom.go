package openapi

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// buildCustom builds the document of each custom resource in a group version.
func (g *groupVersion) buildCustom() (specs []*spec3.OpenAPI, err error) {
	for _, k := range g.kinds {
		if k.Custom == nil {
			continue
		}
		crd, err := k.Custom.Definition.Read()
		if err != nil {
			return nil, err
		}
		doc, err := builder.BuildOpenAPIV3(crd, g.version, builder.Options{IncludeSelectableFields: true})
		if err != nil {
			return nil, fmt.Errorf("build OpenAPI v3 of %s: %w", crd.Name, err)
		}
		specs = append(specs, doc)
	}
	return specs, nil
}

func mergeV3(specs []*spec3.OpenAPI) (*spec3.OpenAPI, error) {
	doc, err := builder.MergeSpecsV3(specs...)
	if err != nil {
		return nil, fmt.Errorf("merge OpenAPI v3: %w", err)
	}
	return doc, nil
}

// buildV2 describes all versions of a definition.
func (d *definition) buildV2() (*spec.Swagger, error) {
	crd, err := d.Read()
	if err != nil {
		return nil, err
	}
	all := &spec.Swagger{}
	for _, version := range d.versions {
		doc, err := builder.BuildOpenAPIV2(crd, version, builder.Options{V2: true, IncludeSelectableFields: true})
		if err != nil {
			return nil, fmt.Errorf("build OpenAPI v2 of %s: %w", crd.Name, err)
		}
		doc.Definitions = handler.PruneDefaults(doc.Definitions)
		if all, err = builder.MergeSpecs(all, doc); err != nil {
			return nil, fmt.Errorf("merge OpenAPI v2 of %s: %w", crd.Name, err)
		}
	}
	return all, nil
}
