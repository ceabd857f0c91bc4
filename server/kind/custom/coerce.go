package custom

import (
	"fmt"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// schemas are the structural schemas of one definition.
type schemas struct {
	group, kind     string
	preserveUnknown bool
	byVersion       map[string]*structuralschema.Structural
	outlines        map[string]*outline // of the same
	growing         map[string]bool     // the versions whose defaults are counted, see growth
}

// coercion are the options of coerce.
type coercion struct {
	// stored says that the object comes from the log. It may be older than a rule, so
	// malformed metadata is dropped and not refused.
	stored bool
	// report asks for the paths of unknown fields.
	report bool
}

// coerce changes an object as decoding into a Go type would. Metadata keeps only the fields of
// ObjectMeta; fields that the schema of the object's version does not know are dropped, and
// so are nulls that are not allowed and have no default. Of objects of other kinds only the
// metadata is changed; validation refuses them later.
func (s *schemas) coerce(u *unstructured.Unstructured, how coercion) (unknown []string, err error) {
	kind, hasKind, err := unstructured.NestedString(u.Object, "kind")
	if err != nil {
		return nil, err
	}
	apiVersion, hasVersion, err := unstructured.NestedString(u.Object, "apiVersion")
	if err != nil {
		return nil, err
	}
	if s.isCoerced(u, kind, apiVersion, how) {
		return nil, nil
	}
	meta, hasMeta, unknown, err := objectmeta.GetObjectMetaWithOptions(u.Object, objectmeta.ObjectMetaOptions{
		DropMalformedFields: how.stored, ReturnUnknownFieldPaths: how.report,
	})
	if err != nil {
		return nil, err
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, err
	}
	if gv.Group == s.group && kind == s.kind {
		more, err := s.coerceContent(u, gv.Version, how)
		if err != nil {
			return nil, err
		}
		unknown = append(unknown, more...)
		if how.stored && hasMeta && meta.Generation == 0 {
			meta.Generation = 1 // stored before custom resources had a generation
		}
	}
	if hasKind {
		u.SetKind(kind)
	}
	if hasVersion {
		u.SetAPIVersion(apiVersion)
	}
	if hasMeta {
		return unknown, objectmeta.SetObjectMeta(u.Object, meta)
	}
	return unknown, nil
}

// isCoerced reports that coerce would not change an object of this kind.
func (s *schemas) isCoerced(u *unstructured.Unstructured, kind, apiVersion string, how coercion) bool {
	metadata, _ := u.Object["metadata"].(map[string]any)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if metadata == nil || err != nil || gv.Group != s.group || kind != s.kind {
		return false
	}
	o := s.outlines[gv.Version]
	return o != nil && o.fits(u.Object) && plainMetadata(metadata, how.stored)
}

// coerceContent coerces everything except the object's own metadata. The metadata of embedded
// objects is coerced here.
func (s *schemas) coerceContent(u *unstructured.Unstructured, version string, how coercion) (unknown []string, err error) {
	structural := s.byVersion[version]
	if !s.preserveUnknown {
		options := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: how.report}
		unknown = pruning.PruneWithOptions(u.Object, structural, true, options)
		defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, structural)
	}
	wrong, more := objectmeta.CoerceWithOptions(nil, u.Object, structural, false, objectmeta.CoerceOptions{
		DropInvalidFields: how.stored, ReturnUnknownFieldPaths: how.report,
	})
	if wrong != nil {
		return nil, wrong
	}
	return append(unknown, more...), nil
}

// fill adds the defaults of the object's version. Too many defaults are an error.
func (s *schemas) fill(u *unstructured.Unstructured) error {
	gvk := u.GroupVersionKind()
	if gvk.Group != s.group || gvk.Kind != s.kind {
		return nil
	}
	if o := s.outlines[gvk.Version]; o != nil && o.fits(u.Object) && o.complete(u.Object) {
		return nil
	}
	structural := s.byVersion[gvk.Version]
	if s.growing[gvk.Version] {
		if g := (&growth{maxGrowth}); !g.spend(u.Object, structural) {
			return errGrowth
		}
	}
	defaulting.Default(u.Object, structural)
	return nil
}

func unknownField(path string) error { return fmt.Errorf("unknown field %q", path) }
