package rest

import (
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	kjson "sigs.k8s.io/json"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// maxCopyBytes bounds what a JSON patch's copy operations add up to; without it a small
// patch could fill the memory. kube-apiserver has the same bound, for the whole process
// as the library has it.
const maxCopyBytes = 3 << 20

func init() { jsonpatch.AccumulatedCopySizeLimit = maxCopyBytes }

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
