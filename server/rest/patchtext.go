package rest

import (
	"bytes"
	stderrors "errors"
	"fmt"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	kjson "sigs.k8s.io/json"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// maxCopyBytes bounds what a JSON patch's copy operations add up to; without it a small
// patch could fill the memory. kube-apiserver has the same bound, for the whole process
// as the library has it.
const maxCopyBytes = 3 << 20

func init() { jsonpatch.AccumulatedCopySizeLimit = maxCopyBytes }

// textual applies a patch that works on JSON text.
func (p *patching) textual(versioned runtime.Object) (runtime.Object, error) {
	if err := checkNesting(p.patch); err != nil {
		return nil, err
	}
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
	obj, _, err := p.q.codec().Decode(after, mediaJSON, p.assumed(after), p.strict())
	if err != nil {
		more, isStrict := runtime.AsStrictDecodingError(err)
		if api := errors.APIStatus(nil); stderrors.As(err, &api) {
			return nil, err
		}
		if !isStrict {
			return nil, invalidPatch(string(after), err)
		}
		unknown = append(unknown, more.Errors()...)
	}
	return obj, p.reportUnknown(unknown, string(after))
}

// assumed is the kind that a patched object is taken for where it does not say. Upstream
// assumes none here, and its decoder then finds a kind by itself, even for an object that
// has lost its apiVersion. The patch libraries write keys in order, so apiVersion is first.
func (p *patching) assumed(after []byte) schema.GroupVersionKind {
	gvk := p.q.gvk()
	head, _ := bytes.CutPrefix(after, []byte(`{"apiVersion":"`))
	if p.q.kind.NoProtobuf || bytes.HasPrefix(head, []byte(gvk.GroupVersion().String()+`"`)) {
		return gvk
	}
	return schema.GroupVersionKind{}
}

// jsonPatchOp is decoded only to find unknown fields; error texts name it.
type jsonPatchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from"`
	Value any    `json:"value"`
}

func (p *patching) jsonPatch(before []byte) (after []byte, unknown []error, err error) {
	if p.strict() {
		var operations []jsonPatchOp
		if unknown, err = kjson.UnmarshalStrict(p.patch, &operations); err != nil {
			upstreams := strings.Replace(err.Error(), "rest.jsonPatchOp", "handlers.jsonPatchOp", 1)
			return nil, nil, errors.NewBadRequest("error decoding patch: " + upstreams)
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
	err = survive(func() error {
		after, err = patch.Apply(before)
		return err
	})
	if err != nil {
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
	switch {
	case err == jsonpatch.ErrBadJSONPatch:
		return nil, nil, errors.NewBadRequest(err.Error())
	case err != nil:
		return nil, nil, unreasoned(err)
	}
	return after, unknown, nil
}

// survive runs a patch library, which has inputs that it panics on: a path into a null, an
// order of maps for a list of strings. There upstream closes the connection.
func survive(apply func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = unprocessable(fmt.Errorf("cannot apply the patch: %v", p))
		}
	}()
	return apply()
}
