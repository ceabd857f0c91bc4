package rest

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"

	"github.com/plinth-io/plinth/server/response"
)

// strategic applies a strategic merge patch, by the patch strategies in the type's field tags.
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
		return nil, apierrors.NewBadRequest(err.Error())
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

// strategicError answers the library's errors with upstream's codes.
func strategicError(err error) error {
	switch err {
	case nil:
		return nil
	case mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList, mergepatch.ErrBadPatchFormatForRetainKeys,
		mergepatch.ErrBadPatchFormatForSetElementOrderList, mergepatch.ErrUnsupportedStrategicMergePatchFormat:
		return apierrors.NewBadRequest(err.Error())
	case mergepatch.ErrNoListOfLists, mergepatch.ErrPatchContentNotMatchRetainKeys:
		return unprocessable(err)
	}
	return response.Unreasoned(err)
}

func unprocessable(err error) error {
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
}
