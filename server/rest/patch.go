package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// maxJSONPatchOperations bounds the work of one JSON patch, as upstream does.
const maxJSONPatchOperations = 10000

// patching is one patch request.
type patching struct {
	q       *request
	type_   types.PatchType
	patch   []byte
	options *metav1.PatchOptions
}

// patch changes an object by a JSON patch (RFC 6902), a merge patch (RFC 7386) or a
// strategic merge patch.
func (q *request) patch() error {
	p := &patching{q: q, options: &metav1.PatchOptions{}}
	contentType, _, _ := strings.Cut(q.r.Header.Get("Content-Type"), ";")
	p.type_ = types.PatchType(contentType)
	if supported := q.patchTypes(); !contains(supported, contentType) {
		return unsupportedMedia(supported)
	}
	var err error
	if p.patch, err = q.body(); err != nil {
		return err
	}
	if values := q.values(); len(values) > 0 {
		if err := decodeOptions(values, p.options); err != nil {
			return err
		}
	}
	if errs := validation.ValidatePatchOptions(p.options, p.type_); len(errs) > 0 {
		return errors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "PatchOptions"}, "", errs)
	}
	return q.modifyAndRespond(modification{
		options: &metav1.UpdateOptions{
			DryRun: p.options.DryRun, FieldManager: p.options.FieldManager, FieldValidation: p.options.FieldValidation,
		},
		body: p.apply,
	})
}

// patchTypes that the resource takes. Custom resources have no strategic merge patch.
func (q *request) patchTypes() []string {
	list := []string{string(types.JSONPatchType), string(types.MergePatchType)}
	if !q.kind.NoProtobuf {
		list = append(list, string(types.StrategicMergePatchType))
	}
	return list
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

// apply makes the new body from the old one.
func (p *patching) apply(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	q := p.q
	if old == nil {
		return nil, errors.NewNotFound(q.groupResource(), q.name)
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
	return obj, q.checkIdentity(m)
}

// textual applies a patch that works on JSON text.
func (p *patching) textual(versioned runtime.Object) (runtime.Object, error) {
	before, err := marshalJSON(versioned)
	if err != nil {
		return nil, err
	}
	var after []byte
	var unknown []error
	if p.type_ == types.JSONPatchType {
		after, unknown, err = p.jsonPatch(before)
	} else {
		after, unknown, err = p.mergePatch(before)
	}
	if err != nil {
		return nil, err
	}
	obj, _, err := p.q.codec().Decode(after, mediaJSON, p.q.gvk(), p.strict())
	if err != nil {
		more, isStrict := runtime.AsStrictDecodingError(err)
		if !isStrict {
			return nil, invalidPatch(string(after), err)
		}
		unknown = append(unknown, more.Errors()...)
	}
	return obj, p.reportUnknown(unknown, string(after))
}

func (p *patching) strict() bool {
	return fieldValidation(p.options.FieldValidation) != metav1.FieldValidationIgnore
}

// reportUnknown makes warnings or an error of unknown and duplicate fields.
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
	return errors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
		field.Invalid(field.NewPath("patch"), patched, err.Error()),
	})
}

// jsonPatchOperation is decoded only to find unknown fields.
type jsonPatchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from"`
	Value any    `json:"value"`
}

func (p *patching) jsonPatch(before []byte) (after []byte, unknown []error, err error) {
	if p.strict() {
		var operations []jsonPatchOperation
		if unknown, err = kjson.UnmarshalStrict(p.patch, &operations); err != nil {
			return nil, nil, errors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
		for i, e := range unknown {
			unknown[i] = fmt.Errorf("json patch %v", e)
		}
	}
	patch, err := jsonpatch.DecodePatch(p.patch)
	if err != nil {
		return nil, nil, errors.NewBadRequest(err.Error())
	}
	if len(patch) > maxJSONPatchOperations {
		return nil, nil, errors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"The allowed maximum operations in a JSON patch is %d, got %d", maxJSONPatchOperations, len(patch)))
	}
	if after, err = patch.Apply(before); err != nil {
		return nil, nil, unprocessable(err)
	}
	return after, unknown, nil
}

func (p *patching) mergePatch(before []byte) (after []byte, unknown []error, err error) {
	if p.strict() {
		if unknown, err = kjson.UnmarshalStrict(p.patch, &map[string]any{}); err != nil {
			return nil, nil, errors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
	}
	after, err = jsonpatch.MergePatch(before, p.patch)
	if err == jsonpatch.ErrBadJSONPatch {
		return nil, nil, errors.NewBadRequest(err.Error())
	}
	return after, unknown, err
}

// strategic merges by the patch strategies that the type's field tags name.
func (p *patching) strategic(versioned runtime.Object) (runtime.Object, error) {
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(versioned)
	if err != nil {
		return nil, err
	}
	patch := map[string]any{}
	var unknown []error
	if p.strict() {
		unknown, err = kjson.UnmarshalStrict(p.patch, &patch)
	} else {
		err = kjson.UnmarshalCaseSensitivePreserveInts(p.patch, &patch)
	}
	if err != nil {
		return nil, errors.NewBadRequest(err.Error())
	}
	codec := p.q.codec()
	target, err := codec.Versioned(codec.New(), p.q.gvk().GroupVersion())
	if err != nil {
		return nil, err
	}
	after, err := strategicpatch.StrategicMergeMapPatch(before, patch, target)
	if err != nil {
		return nil, strategicError(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(after, target, p.strict()); err != nil {
		more, isStrict := runtime.AsStrictDecodingError(err)
		if !isStrict {
			return nil, invalidPatch(fmt.Sprintf("%+v", patch), err)
		}
		unknown = append(unknown, more.Errors()...)
	}
	if err := p.reportUnknown(unknown, fmt.Sprintf("%+v", patch)); err != nil {
		return nil, err
	}
	return codec.Hub(target)
}

func strategicError(err error) error {
	switch err {
	case mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList, mergepatch.ErrBadPatchFormatForRetainKeys,
		mergepatch.ErrBadPatchFormatForSetElementOrderList, mergepatch.ErrUnsupportedStrategicMergePatchFormat:
		return errors.NewBadRequest(err.Error())
	case mergepatch.ErrNoListOfLists, mergepatch.ErrPatchContentNotMatchRetainKeys:
		return unprocessable(err)
	}
	if _, ok := err.(*json.SyntaxError); ok {
		return errors.NewBadRequest(err.Error())
	}
	return err
}

func unprocessable(err error) error {
	return errors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
}
