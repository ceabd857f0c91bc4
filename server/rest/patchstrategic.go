package rest

import (
	"fmt"
	"net/http"

	kjson "sigs.k8s.io/json"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

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
	if err := checkLists(patch); err != nil {
		return nil, err
	}
	codec := p.q.codec()
	target, err := codec.Versioned(codec.New(), p.q.gvk().GroupVersion())
	if err != nil {
		return nil, err
	}
	var after map[string]any
	err = survive(func() (err error) {
		after, err = strategicpatch.StrategicMergeMapPatch(before, patch, target)
		return strategicError(err)
	})
	if err != nil {
		return nil, err
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

// strategicError gives the library's errors the codes that upstream's handler gives them.
func strategicError(err error) error {
	switch err {
	case nil:
		return nil
	case mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList, mergepatch.ErrBadPatchFormatForRetainKeys,
		mergepatch.ErrBadPatchFormatForSetElementOrderList, mergepatch.ErrUnsupportedStrategicMergePatchFormat:
		return errors.NewBadRequest(err.Error())
	case mergepatch.ErrNoListOfLists, mergepatch.ErrPatchContentNotMatchRetainKeys:
		return unprocessable(err)
	}
	return unreasoned(err)
}

func unprocessable(err error) error {
	return errors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
}
