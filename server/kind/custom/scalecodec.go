package custom

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/plinth-io/plinth/server/kind"
)

// scaleCodec is the kind.Codec of the bodies of scale. Hub form is autoscaling/v1. Bodies are
// never stored.
type scaleCodec struct{}

func (scaleCodec) New() runtime.Object { return &autoscalingv1.Scale{} }

func (scaleCodec) NewList() runtime.Object { return &unstructured.UnstructuredList{} }

func (scaleCodec) NewVersioned(schema.GroupVersion) (runtime.Object, error) {
	return &autoscalingv1.Scale{}, nil
}

var scaleMedia = serializer.NewCodecFactory(scheme.Scheme, serializer.WithSerializer(cbor.NewSerializerInfo)).SupportedMediaTypes()

func (scaleCodec) Decode(body []byte, mediaType string, def schema.GroupVersionKind, strict bool) (runtime.Object, schema.GroupVersionKind, error) {
	info, ok := runtime.SerializerInfoForMediaType(scaleMedia, mediaType)
	if !ok {
		return nil, def, fmt.Errorf("no decoder for media type %q", mediaType)
	}
	decoder := info.Serializer
	if strict && info.StrictSerializer != nil {
		decoder = info.StrictSerializer
	}
	obj, gvk, err := decoder.Decode(body, &def, &autoscalingv1.Scale{})
	if gvk == nil {
		gvk = &schema.GroupVersionKind{}
	}
	return obj, *gvk, err
}

func (scaleCodec) Versioned(obj runtime.Object, gv schema.GroupVersion) (runtime.Object, error) {
	obj.GetObjectKind().SetGroupVersionKind(scaleKind)
	return obj, nil
}

func (scaleCodec) Hub(obj runtime.Object) (runtime.Object, error) { return obj, nil }

func (scaleCodec) Objects(context.Context) kind.Objects {
	return kind.Objects{Creater: scheme.Scheme, Typer: scheme.Scheme, Defaulter: scheme.Scheme, Convertor: scheme.Scheme}
}

func (scaleCodec) Encode(runtime.Object) ([]byte, error) {
	return nil, fmt.Errorf("a Scale is not stored")
}

func (scaleCodec) Load([]byte) (runtime.Object, error) {
	return nil, fmt.Errorf("a Scale is not stored")
}
