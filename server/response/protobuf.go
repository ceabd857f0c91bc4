package response

import (
	"encoding/binary"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
)

type protoMarshaler interface{ Marshal() ([]byte, error) }

func marshalProtobuf(obj any) ([]byte, error) {
	m, ok := obj.(protoMarshaler)
	if !ok {
		return nil, fmt.Errorf("%T has no protobuf encoding", obj)
	}
	return m.Marshal()
}

// protobufMagic opens every protobuf body of the API.
var protobufMagic = []byte("k8s\x00")

// Envelope wraps a protobuf message as the API does on the wire.
func Envelope(apiVersion, kind string, raw []byte) ([]byte, error) {
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
	size := unknown.Size()
	out := make([]byte, len(protobufMagic)+size)
	copy(out, protobufMagic)
	n, err := unknown.MarshalTo(out[len(protobufMagic):])
	return out[:len(protobufMagic)+n], err
}

// EnvelopeHead is what Envelope writes before a message of a size.
func EnvelopeHead(apiVersion, kind string, size int) ([]byte, error) {
	meta := runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}
	raw, err := meta.Marshal()
	if err != nil {
		return nil, err
	}
	b := append([]byte{}, protobufMagic...)
	b = append(AppendField(b, 1, raw), FieldTag(2))
	return binary.AppendUvarint(b, uint64(size)), nil
}

// EnvelopeTail is what Envelope writes after a message: two empty fields.
var EnvelopeTail = AppendField(AppendField(nil, 3, nil), 4, nil)

// FieldTag of a length-delimited protobuf field.
func FieldTag(number int) byte { return byte(number<<3 | 2) }

// AppendField appends a length-delimited protobuf field.
func AppendField(b []byte, number int, value []byte) []byte {
	b = append(b, FieldTag(number))
	b = binary.AppendUvarint(b, uint64(len(value)))
	return append(b, value...)
}

// FieldSize is how much AppendField appends for a value of length bytes.
func FieldSize(length int) int {
	size := 2 + length
	for n := length >> 7; n > 0; n >>= 7 {
		size++
	}
	return size
}
