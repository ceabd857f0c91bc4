package rest

import (
	"k8s.io/apimachinery/pkg/api/errors"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// options reads the query parameters of a write into an options object and checks them.
func (q *request) options(kind string, into runtime.Object, validate func() field.ErrorList) error {
	if values := q.values(); len(values) > 0 {
		if err := decodeOptions(values, into); err != nil {
			return err
		}
	}
	return invalidOptions(kind, validate())
}

func invalidOptions(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return errors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

// decodeOptions reads query parameters into an options object.
func decodeOptions(values map[string][]string, into runtime.Object) error {
	if err := metainternalversionscheme.ParameterCodec.DecodeParameters(values, metav1.SchemeGroupVersion, into); err != nil {
		return errors.NewBadRequest(err.Error())
	}
	return nil
}
