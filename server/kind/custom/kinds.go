package custom

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	kubeversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/plinth-io/plinth/server/kind"
)

// The verbs are in the order of upstream's discovery.
var (
	verbs            = []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	subresourceVerbs = []string{"get", "patch", "update"}
)

// patchTypes lack strategic merge patch, whose rules come from Go types.
var patchTypes = []types.PatchType{types.JSONPatchType, types.MergePatchType, types.ApplyPatchType}

// use is shared by all Kinds of a definition. Both parts are made at their first use.
type use struct {
	serving  func() (*serving, error)
	topology func() (managedfields.TypeConverter, error)
}

func (u *use) version(name string) func() (*version, error) {
	return func() (*version, error) {
		s, err := u.serving()
		if err != nil {
			return nil, err
		}
		return s.versions[name], nil
	}
}

// Kinds makes a Kind of each served version of a definition, with the accepted names. stored
// is the Kind of the storage version, even if that version is not served. source is called
// when the schema is needed for the first time. gone is kind.CustomResource.Gone.
func Kinds(d *Definition, source Source, converters *Converters, gone <-chan struct{}) (kinds []*kind.Kind, stored *kind.Kind, err error) {
	u := &use{
		serving:  sync.OnceValues(func() (*serving, error) { return newServing(source, converters) }),
		topology: sync.OnceValues(func() (managedfields.TypeConverter, error) { return newTopology(source) }),
	}
	mapping := replicasPaths(d.CRD)
	published := &kind.Definition{ID: identity(d.CRD), Read: source.published(identity(d.CRD))}
	for i := range d.CRD.Spec.Versions {
		v := &d.CRD.Spec.Versions[i]
		if !v.Served && !v.Storage {
			continue
		}
		k, err := newKind(d, u, v, mapping)
		if err != nil {
			return nil, nil, fmt.Errorf("version %s of %s: %w", v.Name, d.CRD.Name, err)
		}
		k.Custom.Definition, k.Custom.Gone = published, gone
		if v.Storage {
			stored = k
		}
		if v.Served {
			kinds = append(kinds, k)
		}
	}
	slices.SortFunc(kinds, func(a, b *kind.Kind) int {
		return kubeversion.CompareKubeAwareVersionStrings(b.Versions[0].Name, a.Versions[0].Name)
	})
	return kinds, stored, nil
}

func newKind(d *Definition, u *use, v *apiextensionsv1.CustomResourceDefinitionVersion, mapping managedfields.ResourcePathMappings) (*kind.Kind, error) {
	crd, granted := d.CRD, &d.CRD.Status.AcceptedNames
	gvk := gvkOf(crd, v.Name)
	stored := gvk.GroupKind().WithVersion(storageVersion(crd))
	r := rules{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator,
		namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped, use: u.version(v.Name)}
	k := &kind.Kind{
		Group: crd.Spec.Group, Resource: granted.Plural, Singular: granted.Singular, Kind: granted.Kind, ListKind: granted.ListKind,
		ShortNames: granted.ShortNames, Categories: granted.Categories, Namespaced: r.namespaced,
		PatchTypes: patchTypes, TypedItems: true,
		Versions:     []kind.Version{{Name: v.Name, Deprecated: deprecation(crd, v)}},
		Stored:       kind.Stored{Group: crd.Spec.Group, Resource: granted.Plural, Version: stored.Version},
		UpstreamPath: crd.Spec.Group + "/" + granted.Plural,
		Verbs:        verbs,
		Codec:        &codec{gvk: gvk, listKind: granted.ListKind, stored: stored, use: u.serving},
		Create:       r, Update: r, Delete: r,
		Hooks:        kind.Hooks{SetAside: setAsideFields},
		Attrs:        r.attrs,
		Attributes:   attributes(v),
		FieldLabel:   fieldLabel(v, r.namespaced),
		Table:        r,
		Subresources: map[string]*kind.Subresource{},
		StoredHead:   kind.HeadOf(stored),
		Custom:       &kind.CustomResource{Stale: d.stale()},
	}
	if v.Subresources != nil && v.Subresources.Status != nil {
		k.Subresources["status"] = &kind.Subresource{Name: "status", Verbs: subresourceVerbs, Update: statusRules{r}}
	}
	if v.Subresources != nil && v.Subresources.Scale != nil {
		k.Subresources["scale"] = newScale(v.Subresources.Scale, mapping).subresource(r, gvk.Group)
	}
	status := statusResets(crd)
	if err := addFields(k, u, gvk, status); err != nil {
		return nil, err
	}
	if callsWebhook(crd) {
		k.Custom.Conversion = newConversion(k.Codec.(*codec), fieldsWithin(u, gvk, status))
	}
	return k, nil
}

// addFields gives the Kind and its subresources their field managers.
func addFields(k *kind.Kind, u *use, gvk schema.GroupVersionKind, status resets) (err error) {
	ctx := context.Background()
	if k.Versions[0].Fields, err = newFields(ctx, u, gvk, "", status); err != nil {
		return err
	}
	for name, sub := range k.Subresources {
		fields, err := newFields(ctx, u, gvk, name, status)
		if err != nil {
			return err
		}
		sub.Fields = map[string]*kind.FieldManager{gvk.Version: fields}
	}
	return nil
}

// newFields returns the field manager of writes through a subresource, or of the object
// itself if subresource is empty. status is what writes through /status reset.
func newFields(ctx context.Context, u *use, gvk schema.GroupVersionKind, subresource string, status resets) (*kind.FieldManager, error) {
	hub := gvk.GroupVersion()
	version := fieldpath.APIVersion(hub.String())
	switch {
	case subresource == "scale":
		return newFieldManager(ctx, u, scaleKind, hub, subresource, nil)
	case subresource == "status":
		return newFieldManager(ctx, u, gvk, hub, subresource, status)
	case status[version] != nil:
		return newFieldManager(ctx, u, gvk, hub, "", resets{version: fieldpath.NewSet(fieldpath.MakePathOrDie("status"))})
	}
	return newFieldManager(ctx, u, gvk, hub, "", nil)
}

// fieldsWithin is kind.Conversion.Fields. It makes field managers whose conversions end with
// the request. addFields has made the same ones without an error, so there is none here.
func fieldsWithin(u *use, gvk schema.GroupVersionKind, status resets) func(context.Context, string) *kind.FieldManager {
	return func(ctx context.Context, subresource string) *kind.FieldManager {
		fields, err := newFields(ctx, u, gvk, subresource, status)
		if err != nil {
			panic(err)
		}
		return fields
	}
}

func gvkOf(crd *apiextensionsv1.CustomResourceDefinition, version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: crd.Spec.Group, Version: version, Kind: crd.Status.AcceptedNames.Kind}
}

// deprecation is the warning in every answer of a deprecated version: the definition's own
// text, or a default text that names a newer version if there is one.
func deprecation(crd *apiextensionsv1.CustomResourceDefinition, v *apiextensionsv1.CustomResourceDefinitionVersion) string {
	if !v.Deprecated {
		return ""
	}
	if v.DeprecationWarning != nil {
		return *v.DeprecationWarning
	}
	instead := ""
	for _, other := range crd.Spec.Versions {
		if other.Served && !other.Deprecated && kubeversion.CompareKubeAwareVersionStrings(v.Name, other.Name) < 0 &&
			(instead == "" || kubeversion.CompareKubeAwareVersionStrings(instead, other.Name) < 0) {
			instead = other.Name
		}
	}
	text := fmt.Sprintf("%s/%s %s is deprecated", crd.Spec.Group, v.Name, crd.Spec.Names.Kind)
	if instead != "" {
		text += fmt.Sprintf("; use %s/%s %s", crd.Spec.Group, instead, crd.Spec.Names.Kind)
	}
	return text
}

// fieldLabel accepts the selectable fields of a version.
func fieldLabel(v *apiextensionsv1.CustomResourceDefinitionVersion, namespaced bool) func(version, label, value string) (string, string, error) {
	known := map[string]bool{"metadata.name": true, "metadata.namespace": namespaced}
	for _, f := range v.SelectableFields {
		known[strings.TrimPrefix(f.JSONPath, ".")] = true
	}
	return func(_, label, value string) (string, string, error) {
		if !known[label] {
			return "", "", fmt.Errorf("field label not supported: %s", label)
		}
		return label, value, nil
	}
}

var _ runtime.ObjectConvertor = lateConverter{}
