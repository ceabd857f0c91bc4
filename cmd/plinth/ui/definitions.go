package ui

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

const definitionResource = "customresourcedefinitions.apiextensions.k8s.io"

// definitionsPage lists the definitions of custom resources, and the kinds that the server has by itself.
type definitionsPage struct {
	Rows  []definitionRow
	Built []navGroup
	Fault *explained
}

type definitionRow struct {
	Name, Kind, Group, Scope string
	Versions                 []versionRow
	ShortNames               string
	Conditions               []condition
	Link                     string
}

type versionRow struct {
	Name                        string
	Served, Storage, Deprecated bool
}

// definitions shows which kinds there are.
func (v *visit) definitions() error {
	b := new(definitionsPage)
	all, err := v.allDefinitions()
	if err != nil {
		e := explain(err)
		b.Fault = &e
	}
	for i := range all {
		b.Rows = append(b.Rows, v.definitionRow(&all[i]))
	}
	kinds, err := v.conn.served()
	if err != nil {
		return err
	}
	for _, g := range navigation(kinds) {
		if g.Name != customKinds {
			b.Built = append(b.Built, g)
		}
	}
	return v.show("definitions.html", page{Title: "Definitions", Nav: "definitions", Body: b})
}

// allDefinitions reads the definitions as they are, or as they were at the moment of the page.
func (v *visit) allDefinitions() ([]apiextensionsv1.CustomResourceDefinition, error) {
	if v.at.IsNow() {
		var list apiextensionsv1.CustomResourceDefinitionList
		err := v.get(&list, nil, "apis", "apiextensions.k8s.io", "v1", "customresourcedefinitions")
		return list.Items, err
	}
	kind, err := v.past.Kinds.Find(definitionResource)
	if err != nil {
		return nil, err
	}
	versions, err := v.past.History.AllAt(v.ctx(), kind.In("", ""), v.at)
	var all []apiextensionsv1.CustomResourceDefinition
	for i := range versions {
		var d apiextensionsv1.CustomResourceDefinition
		if o, err := past.Object(&versions[i]); err == nil && fromUnstructured(o, &d) {
			all = append(all, d)
		}
	}
	return all, err
}

func (v *visit) definitionRow(d *apiextensionsv1.CustomResourceDefinition) definitionRow {
	row := definitionRow{Name: d.Name, Kind: d.Spec.Names.Kind, Group: d.Spec.Group, Scope: string(d.Spec.Scope),
		ShortNames: strings.Join(d.Spec.Names.ShortNames, ", "), Link: v.link("definitions/" + url.PathEscape(d.Name))}
	for _, version := range d.Spec.Versions {
		row.Versions = append(row.Versions, versionRow{version.Name, version.Served, version.Storage, version.Deprecated})
	}
	for _, c := range d.Status.Conditions {
		row.Conditions = append(row.Conditions, condition{Type: string(c.Type), Status: string(c.Status), Reason: c.Reason, Message: c.Message,
			Since: c.LastTransitionTime.Time, Good: verdict(string(c.Type), string(c.Status))})
	}
	return row
}

// definitionPage is the documentation of a kind: its fields.
type definitionPage struct {
	*visit
	Name, Kind, Group, Version string
	Versions                   []versionRow
	Scope, ShortNames          string
	Custom                     bool
	Columns                    []apiextensionsv1.CustomResourceColumnDefinition
	Conditions                 []condition
	Path                       []pathStep // to the field that is shown
	Field                      *schemaField
	Fault                      *explained
}

// pathStep is a field on the way to the one that is shown.
type pathStep struct{ Name, Path string }

// definition shows the fields of a kind.
func (v *visit) definition() error {
	name := v.r.PathValue("name")
	b := &definitionPage{visit: v, Name: name}
	schemas, err := b.schemas()
	p := page{Title: name + " · fields", Nav: "definitions", Body: b}
	if err == nil {
		err = b.fill(schemas, v.param("field"))
	}
	if err != nil {
		e := explain(err)
		b.Fault, p.Code = &e, e.Code
	}
	return v.show("definition.html", p)
}

// fill finds the field that is asked for.
func (b *definitionPage) fill(schemas *schemaSource, field string) error {
	s := schemas.resolve(schemas.root)
	b.Path = []pathStep{{cmp.Or(b.Kind, b.Name), ""}}
	parts := strings.FieldsFunc(field, func(r rune) bool { return r == '/' })
	for i, part := range parts {
		if s = schemas.step(s, part); s == nil {
			return problem(http.StatusNotFound, "There is no field %s.", strings.Join(parts, "."))
		}
		b.Path = append(b.Path, pathStep{part, strings.Join(parts[:i+1], "/")})
	}
	b.Field = schemas.field("", strings.Join(parts, "/"), s, false, shownDepth)
	return nil
}

// schemas finds the schema of a kind: in its definition, or in the document that the server has of itself.
func (b *definitionPage) schemas() (*schemaSource, error) {
	all, err := b.allDefinitions()
	if i := slices.IndexFunc(all, func(d apiextensionsv1.CustomResourceDefinition) bool { return d.Name == b.Name }); i >= 0 {
		return b.ofDefinition(&all[i])
	}
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	return b.ofDocument()
}

func (b *definitionPage) ofDefinition(d *apiextensionsv1.CustomResourceDefinition) (*schemaSource, error) {
	row := b.definitionRow(d)
	b.Custom, b.Kind, b.Group, b.Scope, b.ShortNames, b.Versions, b.Conditions = true, row.Kind, row.Group, row.Scope, row.ShortNames, row.Versions, row.Conditions
	wanted := b.param("version")
	for _, version := range d.Spec.Versions {
		if wanted != version.Name && (wanted != "" || !version.Storage) {
			continue
		}
		b.Version, b.Columns = version.Name, version.AdditionalPrinterColumns
		if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
			return nil, problem(http.StatusNotFound, "%s has no schema for %s.", b.Name, version.Name)
		}
		root := new(fieldSchema)
		return &schemaSource{root: root}, convert(version.Schema.OpenAPIV3Schema, root)
	}
	return nil, problem(http.StatusNotFound, "%s has no version %q.", b.Name, wanted)
}

// ofDocument reads the schema of a kind from /openapi/v3.
func (b *definitionPage) ofDocument() (*schemaSource, error) {
	kind, err := b.past.Kinds.Find(b.Name)
	if err != nil {
		return nil, err
	}
	gvr := kind.Resource
	b.Name, b.Kind, b.Group, b.Version, b.Scope = kind.Name(), kind.Kind, gvr.Group, gvr.Version, "Cluster"
	if kind.Namespaced {
		b.Scope = "Namespaced"
	}
	path := []string{"openapi", "v3", "apis", gvr.Group, gvr.Version}
	if gvr.Group == "" {
		path = []string{"openapi", "v3", "api", gvr.Version}
	}
	var document struct {
		Components struct {
			Schemas map[string]*fieldSchema `json:"schemas"`
		} `json:"components"`
	}
	if err := b.get(&document, nil, path...); err != nil {
		return nil, fmt.Errorf("read the schema of %s: %w", b.Name, err)
	}
	for _, s := range document.Components.Schemas {
		for _, k := range s.Kinds {
			if k.Group == gvr.Group && k.Version == gvr.Version && k.Kind == kind.Kind {
				return &schemaSource{root: s, named: document.Components.Schemas}, nil
			}
		}
	}
	return nil, problem(http.StatusNotFound, "The server has no schema for %s.", b.Name)
}
