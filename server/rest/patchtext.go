package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/plinth-io/plinth/server/response"
)

// maxCopyBytes bounds the sum of all copy operations of a JSON patch, because a small patch could
// fill the memory otherwise. kube-apiserver has the same bound. The library has one bound for the
// whole process.
const maxCopyBytes = 3 << 20

func init() { jsonpatch.AccumulatedCopySizeLimit = maxCopyBytes }

// textual applies a JSON patch or a merge patch, which work on JSON text.
func (p *patching) textual(versioned runtime.Object) (runtime.Object, error) {
	if err := checkNesting(p.patch); err != nil {
		return nil, err
	}
	before, err := json.Marshal(versioned)
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
	obj, _, err := p.q.codec().Decode(after, response.MediaJSON, p.assumed(after), p.strict())
	if err != nil {
		more, isStrict := runtime.AsStrictDecodingError(err)
		if api := apierrors.APIStatus(nil); errors.As(err, &api) {
			return nil, err
		}
		if !isStrict {
			return nil, invalidPatch(string(after), err)
		}
		unknown = append(unknown, more.Errors()...)
	}
	return obj, p.reportUnknown(unknown, string(after))
}

// assumed is the default kind for decoding a patched object that does not name its kind. Upstream passes no default
// here, and its decoder guesses a kind, even for an object that has lost its apiVersion. The patch libraries write keys
// in order, so apiVersion is first.
func (p *patching) assumed(after []byte) schema.GroupVersionKind {
	gvk := p.q.gvk()
	head, _ := bytes.CutPrefix(after, []byte(`{"apiVersion":"`))
	if p.q.kind.Custom != nil || bytes.HasPrefix(head, []byte(gvk.GroupVersion().String()+`"`)) {
		return gvk
	}
	return schema.GroupVersionKind{}
}

// jsonPatchOp is decoded only to find unknown fields. Error texts contain its name.
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
			return nil, nil, apierrors.NewBadRequest("error decoding patch: " + upstreams)
		}
		for i, e := range unknown {
			unknown[i] = fmt.Errorf("json patch %v", e)
		}
	}
	patch, err := jsonpatch.DecodePatch(p.patch)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	if len(patch) > maxJSONPatchOperations {
		return nil, nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
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
			return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
	}
	after, err = jsonpatch.MergePatch(before, p.patch)
	switch {
	case err == jsonpatch.ErrBadJSONPatch:
		return nil, nil, apierrors.NewBadRequest(err.Error())
	case err != nil:
		return nil, nil, response.Unreasoned(err)
	}
	return after, unknown, nil
}

// survive runs a patch library and turns a panic into an error. The libraries panic on some
// inputs: a path into a null, an order of maps for a list of strings. Upstream closes the
// connection then.
func survive(apply func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = unprocessable(fmt.Errorf("cannot apply the patch: %v", p))
		}
	}()
	return apply()
}
