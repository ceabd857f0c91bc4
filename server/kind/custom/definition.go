package custom

import (
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"

	"github.com/plinth-io/plinth/server/kind"
)

// Definition is a CustomResourceDefinition as it was at one revision.
type Definition struct {
	// CRD is the object without the schemas of its versions, which are most of its size.
	CRD *apiextensionsv1.CustomResourceDefinition
	// Since is the revision of the last known change of the schema, and At its time in Unix
	// milliseconds. Both are 0 if the definition has its first schema.
	Since, At int64
}

// underWay is the longest time that a request may take. A request that began under an earlier
// schema, here or on another replica, may store objects until then.
const underWay = time.Minute

// stale is kind.CustomResource.Stale: a stored object may have been written under an earlier schema.
func (d *Definition) stale() func(revision, at int64) bool {
	until := int64(0)
	if d.Since > 0 {
		until = d.At + underWay.Milliseconds()
	}
	return func(revision, at int64) bool { return revision <= d.Since || at <= until }
}

// Decode decodes a definition without its schemas.
func Decode(json []byte) (*Definition, error) {
	var small struct {
		apiextensionsv1.CustomResourceDefinition
		Spec struct {
			apiextensionsv1.CustomResourceDefinitionSpec
			Versions []versionWithoutSchema `json:"versions"`
		} `json:"spec"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(json, &small); err != nil {
		return nil, fmt.Errorf("decode CustomResourceDefinition: %w", err)
	}
	crd := &small.CustomResourceDefinition
	crd.Spec = small.Spec.CustomResourceDefinitionSpec
	for _, v := range small.Spec.Versions {
		crd.Spec.Versions = append(crd.Spec.Versions, v.CustomResourceDefinitionVersion)
	}
	return &Definition{CRD: crd}, nil
}

type versionWithoutSchema struct {
	apiextensionsv1.CustomResourceDefinitionVersion
	Schema skipped `json:"schema"`
}

// skipped decodes any JSON and keeps nothing.
type skipped struct{}

func (skipped) UnmarshalJSON([]byte) error { return nil }

// Source reads the JSON of a definition.
type Source func() ([]byte, error)

// whole decodes the definition with its schemas.
func (read Source) whole() (*apiextensionsv1.CustomResourceDefinition, error) {
	json, err := read()
	if err != nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(json, crd); err != nil {
		return nil, fmt.Errorf("decode CustomResourceDefinition: %w", err)
	}
	return crd, nil
}

// identity changes with everything in a definition that its Kinds depend on.
func identity(crd *apiextensionsv1.CustomResourceDefinition) string {
	n := &crd.Status.AcceptedNames
	return strings.Join([]string{string(crd.UID), fmt.Sprint(crd.Generation), n.Plural, n.Singular, n.Kind, n.ListKind}, " ")
}

// published reads the definition of that identity, with the accepted names in place of the
// names in its spec.
func (read Source) published(id string) func() (*apiextensionsv1.CustomResourceDefinition, error) {
	return func() (*apiextensionsv1.CustomResourceDefinition, error) {
		crd, err := read.whole()
		if err != nil {
			return nil, err
		}
		if identity(crd) != id {
			return nil, fmt.Errorf("%s: %w", crd.Name, kind.ErrReplaced)
		}
		crd.Spec.Names = crd.Status.AcceptedNames
		return crd, nil
	}
}
