package rest

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"

	"github.com/plinth-io/plinth/server/response"
)

// deleteOptions reads the options of a deletion from the body, or from the query if there is no
// body.
func (q *request) deleteOptions() (*metav1.DeleteOptions, error) {
	body, err := q.body()
	if err != nil {
		return nil, err
	}
	options := &metav1.DeleteOptions{}
	if len(body) > 0 {
		err = decodeDeleteOptions(q, body, options)
	} else if values := q.values(); len(values) > 0 {
		err = decodeOptions(values, options)
	}
	if err != nil {
		return nil, err
	}
	if isUnsafe(options) && !unsafeDeletes() && !q.isDamaged() {
		options.IgnoreStoreReadErrorWithClusterBreakingPotential = nil
	}
	if err := invalidOptions("DeleteOptions", validation.ValidateDeleteOptions(options)); err != nil {
		return nil, err
	}
	options.TypeMeta.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("DeleteOptions"))
	return options, nil
}

// optionsCodecs decode options in each encoding.
var optionsCodecs = serializer.NewCodecFactory(metainternalversionscheme.Scheme, serializer.WithSerializer(cbor.NewSerializerInfo))

// decodeDeleteOptions reads a body of any group's DeleteOptions.
func decodeDeleteOptions(q *request, body []byte, options *metav1.DeleteOptions) error {
	media, err := q.inputMedia(q.r.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	if media == response.MediaYAML {
		if err := response.CheckAliases(body, q.api.o.MaxBodyBytes); err != nil {
			return err
		}
	}
	info, ok := runtime.SerializerInfoForMediaType(optionsCodecs.SupportedMediaTypes(), media)
	if !ok {
		return response.UnsupportedMediaType(q.api.mediaTypes)
	}
	kind := metav1.SchemeGroupVersion.WithKind("DeleteOptions")
	obj, got, err := optionsCodecs.DecoderToVersion(info.Serializer, kind.GroupVersion()).Decode(body, &kind, options)
	if err == nil && obj != options {
		err = errors.New("decoded object cannot be converted to DeleteOptions")
	}
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	q.auditDeleteOptions(options, got.GroupVersion())
	return nil
}
