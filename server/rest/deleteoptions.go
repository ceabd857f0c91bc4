package rest

import (
	stderrors "errors"

	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
)

// deleteOptions come in the body, else in the query.
func (q *request) deleteOptions() (*metav1.DeleteOptions, error) {
	body, err := q.body()
	if err != nil {
		return nil, err
	}
	options := &metav1.DeleteOptions{}
	if len(body) > 0 {
		err = q.decodeDeleteOptions(body, options)
	} else if values := q.values(); len(values) > 0 {
		err = decodeOptions(values, options)
	}
	if err != nil {
		return nil, err
	}
	options.IgnoreStoreReadErrorWithClusterBreakingPotential = nil
	if err := invalidOptions("DeleteOptions", validation.ValidateDeleteOptions(options)); err != nil {
		return nil, err
	}
	options.TypeMeta.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("DeleteOptions"))
	return options, nil
}

// decodeDeleteOptions reads a body of any group's DeleteOptions. Of one that is something
// else, upstream makes an error of its own, not of the client's.
func (q *request) decodeDeleteOptions(body []byte, options *metav1.DeleteOptions) error {
	media, err := q.inputMedia()
	if err != nil {
		return err
	}
	if media == mediaYAML {
		if err := checkAliases(body, q.api.o.MaxBodyBytes); err != nil {
			return err
		}
	}
	codecs := metainternalversionscheme.Codecs
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), media)
	if !ok {
		return unsupportedMedia(resourceObjects.mediaTypes())
	}
	kind := metav1.SchemeGroupVersion.WithKind("DeleteOptions")
	obj, got, err := codecs.DecoderToVersion(info.Serializer, kind.GroupVersion()).Decode(body, &kind, options)
	if err == nil && obj != options {
		err = stderrors.New("decoded object cannot be converted to DeleteOptions")
	}
	if err != nil {
		return unreasoned(err)
	}
	q.auditDeleteOptions(options, got.GroupVersion())
	return nil
}
