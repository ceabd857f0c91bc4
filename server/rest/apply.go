package rest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/response"
)

// apply changes or creates an object by a server-side apply.
// https://kubernetes.io/docs/reference/using-api/server-side-apply/
func (p *patching) apply() error {
	q := p.q
	mod := modification{q: q, options: p.updateOptions(), creates: q.sub == nil, keepFields: true, body: p.applied}
	if !q.hasView() {
		p.sum = sha256.Sum256(p.patch)
		mod.unchanged, mod.admitted, mod.stored = p.again, p.noteMutation, p.remember
	}
	return mod.respond()
}

// applied returns the object old with the fields of the configuration, and without the fields
// that its manager applied before and no longer does. old is nil if there is no object yet.
func (p *patching) applied(_ context.Context, old runtime.Object) (runtime.Object, error) {
	q := p.q
	config, unique, err := p.configuration()
	if err != nil {
		return nil, err
	}
	live := old
	if old == nil {
		if live, err = q.codec().NewVersioned(q.gvk().GroupVersion()); err != nil {
			return nil, err
		}
	}
	force := p.options.Force != nil && *p.options.Force
	obj, err := q.fieldManager().Apply(live, &unstructured.Unstructured{Object: config}, p.options.FieldManager, force)
	if err != nil {
		return nil, response.AsStatus(err)
	}
	if !unique {
		if err := p.reportTwice(); err != nil {
			return nil, err
		}
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if old == nil && m.GetUID() != "" {
		return nil, apierrors.NewConflict(q.groupResource(), q.name,
			fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", m.GetUID()))
	}
	return obj, q.checkIdentity(m)
}

// configuration reads the patch. unique is as in decodeConfiguration; CBOR with a duplicate field is an error.
func (p *patching) configuration() (config map[string]any, unique bool, err error) {
	if p.type_ == types.ApplyCBORPatchType {
		if err := p.q.checkCBOR(p.patch); err != nil {
			return nil, false, err
		}
		if err := direct.Unmarshal(p.patch, &config); err != nil {
			return nil, false, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
		kind.ValidText(config)
		return config, true, nil
	}
	if err := p.q.checkBodyNesting(p.patch); err != nil {
		return nil, false, err
	}
	return decodeConfiguration(p.patch, p.q.api.o.MaxBodyBytes, p.strict())
}

// decodeConfiguration reads YAML, or JSON, which is read much faster. Both ways keep integers apart from floats, which
// objects without Go types depend on. limit bounds the length in bytes with all aliases replaced. unique says that no
// field occurs twice; it is set only for JSON, and only if strict asks for the check.
func decodeConfiguration(patch []byte, limit int64, strict bool) (config map[string]any, unique bool, err error) {
	if bytes.HasPrefix(patch, openObject) {
		if config, unique, err = decodeJSON(patch, strict); err == nil {
			return config, unique, nil
		}
	}
	if err := response.CheckAliases(patch, limit); err != nil {
		return nil, false, err
	}
	config = map[string]any{}
	if err := yaml.Unmarshal(patch, &config); err != nil {
		return nil, false, undecodable(patch, err)
	}
	return config, false, nil
}

// undecodable is upstream's error for YAML that cannot be decoded. Upstream converts the YAML to JSON twice, the first
// time for the audit log unless the body looks like JSON, so the text depends on which conversion fails.
func undecodable(patch []byte, err error) error {
	why, isSyntax := strings.CutPrefix(err.Error(), "error converting YAML to JSON: ")
	if isSyntax && !yaml.IsJSONBuffer(patch) {
		return apierrors.NewBadRequest("error encoding patch: " + why)
	}
	return apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
}

func decodeJSON(patch []byte, strict bool) (config map[string]any, unique bool, err error) {
	if !strict {
		err = kjson.UnmarshalCaseSensitivePreserveInts(patch, &config)
		return config, false, err
	}
	twice, err := kjson.UnmarshalStrict(patch, &config)
	return config, len(twice) == 0, err
}

var openObject = []byte("{")

// reportTwice warns of fields that a configuration has twice, or refuses them. Unknown fields
// need no check: they cannot be merged.
func (p *patching) reportTwice() error {
	if !p.strict() {
		return nil
	}
	err := yaml.UnmarshalStrict(p.patch, &map[string]any{})
	if err == nil {
		return nil
	}
	if p.options.FieldValidation == metav1.FieldValidationStrict {
		return apierrors.NewBadRequest(fmt.Sprintf("error strict decoding patch: %v", err))
	}
	p.q.warnStrict([]error{err})
	return nil
}
