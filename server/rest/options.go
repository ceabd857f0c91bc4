package rest

import (
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/lru"
)

// options reads the query parameters of a write into an options object of the given kind, sets
// its type, and validates it.
func (c *call) options(kind string, into runtime.Object, meta *metav1.TypeMeta, validate func() field.ErrorList) error {
	if err := c.decodeQuery(into); err != nil {
		return err
	}
	*meta = optionsType(kind)
	return invalidOptions(kind, validate())
}

// decoded remembers decoded query strings. Clients that write send the same ones over and over,
// and decoding takes longer than the rest of a small write's preparation.
var decoded = lru.New(1024)

// decodedMaxQuery is the length from which a query string is not remembered.
const decodedMaxQuery = 256

type decodedKey struct {
	options reflect.Type
	query   string
}

// decodeQuery reads the request's query parameters into options. The caller must not write
// through pointers in them, which may be shared with other requests.
func (c *call) decodeQuery(into runtime.Object) error {
	query := c.r.URL.RawQuery
	if query == "" {
		return nil
	}
	to := reflect.ValueOf(into)
	key := decodedKey{to.Type(), query}
	if known, ok := decoded.Get(key); ok {
		to.Elem().Set(known.(reflect.Value))
		return nil
	}
	if err := decodeOptions(c.values(), into); err != nil {
		return err
	}
	if len(query) <= decodedMaxQuery {
		decoded.Add(key, reflect.ValueOf(into.DeepCopyObject()).Elem())
	}
	return nil
}

// optionsType is what admission sees of options besides their fields.
func optionsType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{Kind: kind, APIVersion: "meta.k8s.io/v1"}
}

func invalidOptions(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

// decodeOptions reads query parameters into an options object.
func decodeOptions(values map[string][]string, into runtime.Object) error {
	if err := metainternalversionscheme.ParameterCodec.DecodeParameters(values, metav1.SchemeGroupVersion, into); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}
