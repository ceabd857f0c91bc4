package rest

import (
	"context"
	"crypto/sha256"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxJSONPatchOperations bounds the work of one JSON patch, as upstream does.
const maxJSONPatchOperations = 10000

// patching is one patch request. patched makes the new object; for server-side apply, applied does.
type patching struct {
	q       *request
	type_   types.PatchType
	patch   []byte
	options *metav1.PatchOptions
	sum     [sha256.Size]byte // of the patch, if it is an apply, see unchanged.go
	mutated bool              // a webhook changed the outcome of an apply
}

// patch changes an object by a JSON patch (RFC 6902), a merge patch (RFC 7386), a
// strategic merge patch or a server-side apply.
func (q *request) patch() error {
	p := &patching{q: q, options: &metav1.PatchOptions{}}
	var err error
	if p.type_, err = q.patchType(); err != nil {
		return err
	}
	if p.patch, err = q.body(); err != nil {
		return err
	}
	err = q.options("PatchOptions", p.options, &p.options.TypeMeta, func() field.ErrorList { return validation.ValidatePatchOptions(p.options, p.type_) })
	if err != nil {
		return err
	}
	p.auditPatch()
	if p.applies() {
		return p.apply()
	}
	if !json.Valid(p.patch) {
		return apierrors.NewBadRequest("invalid JSON patch")
	}
	mod := modification{q: q, options: p.updateOptions(), creates: q.createsOnUpdate(), body: p.patched}
	return mod.respond()
}

// applies tells whether the patch is a server-side apply.
func (p *patching) applies() bool {
	return p.type_ == types.ApplyYAMLPatchType || p.type_ == types.ApplyCBORPatchType
}

func (p *patching) updateOptions() *metav1.UpdateOptions {
	return &metav1.UpdateOptions{
		TypeMeta: optionsType("UpdateOptions"),
		DryRun:   p.options.DryRun, FieldManager: p.options.FieldManager, FieldValidation: p.options.FieldValidation,
	}
}

// patched returns the object old with the patch.
func (p *patching) patched(_ context.Context, old runtime.Object) (runtime.Object, error) {
	q := p.q
	if old == nil {
		return nil, apierrors.NewNotFound(q.groupResource(), q.name)
	}
	versioned, err := q.codec().Versioned(old, q.gvk().GroupVersion())
	if err != nil {
		return nil, err
	}
	var obj runtime.Object
	if p.type_ == types.StrategicMergePatchType {
		obj, err = p.strategic(versioned)
	} else {
		obj, err = p.textual(versioned)
	}
	if err != nil {
		return nil, err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if err := q.checkIdentity(m); err != nil {
		return nil, err
	}
	return q.track(old, obj, p.options.FieldManager), nil
}

func (p *patching) strict() bool {
	return fieldValidation(p.options.FieldValidation) != metav1.FieldValidationIgnore
}

// reportUnknown warns of unknown and duplicate fields, or refuses them.
func (p *patching) reportUnknown(unknown []error, patched string) error {
	if len(unknown) == 0 || !p.strict() {
		return nil
	}
	if p.options.FieldValidation == metav1.FieldValidationStrict {
		return invalidPatch(patched, runtime.NewStrictDecodingError(unknown))
	}
	p.q.warnStrict(unknown)
	return nil
}

func invalidPatch(patched string, err error) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
		field.Invalid(field.NewPath("patch"), patched, err.Error()),
	})
}
