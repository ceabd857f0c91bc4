package response

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/watch"
)

// CBOR (https://www.rfc-editor.org/rfc/rfc8949) is encoded by upstream's library, an object at a
// time. Only what is put around encoded objects is put together here: tags, and the heads of maps and
// lists, which are a type and a length.

// selfDescribed is the tag that every body, and every object within an event, begins with.
var selfDescribed = []byte("\xd9\xd9\xf7")

const (
	arrayHead = 4 << 5
	mapHead   = 5 << 5
	cborNull  = 7<<5 | 22
)

// marshalCBOR encodes an object without the tag.
func marshalCBOR(obj any) ([]byte, error) {
	if u, ok := obj.(runtime.Unstructured); ok {
		obj = u.UnstructuredContent()
	}
	return direct.Marshal(obj)
}

// SelfDescribed puts the tag before an encoded object.
func SelfDescribed(object []byte) []byte {
	return append(append(make([]byte, 0, len(selfDescribed)+len(object)), selfDescribed...), object...)
}

// WithTypeCBOR adds kind and apiVersion to an encoded object that has neither, and the tag.
func WithTypeCBOR(apiVersion, kind string, object []byte) ([]byte, error) {
	head, err := marshalCBOR(map[string]string{"kind": kind, "apiVersion": apiVersion})
	if err != nil {
		return nil, err
	}
	n, pairs := cutMapHead(head)
	m, more := cutMapHead(object)
	b := make([]byte, 0, len(selfDescribed)+len(head)+len(object)+1)
	b = appendHead(append(b, selfDescribed...), mapHead, n+m)
	return append(append(b, pairs...), more...), nil
}

// ListHeadCBOR is an encoded list of n items up to its first item. With n below 0 it is a whole list,
// which has null for its items.
func ListHeadCBOR(apiVersion, kind string, metadata any, n int) ([]byte, error) {
	fields, err := marshalCBOR(map[string]any{"kind": kind, "apiVersion": apiVersion, "metadata": metadata})
	if err != nil {
		return nil, err
	}
	name, err := marshalCBOR("items")
	if err != nil {
		return nil, err
	}
	m, pairs := cutMapHead(fields)
	b := appendHead(SelfDescribed(nil), mapHead, m+1)
	b = append(append(b, pairs...), name...)
	if n < 0 {
		return append(b, cborNull), nil
	}
	return appendHead(b, arrayHead, n), nil
}

// appendHead appends the head of a map of n pairs or of a list of n items.
func appendHead(b []byte, head byte, n int) []byte {
	switch {
	case n < 24:
		return append(b, head|byte(n))
	case n < 1<<8:
		return append(b, head|24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, head|25), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, head|26), uint32(n))
}

// cutMapHead returns the number of pairs of an encoded map, which has fewer than 256 as all Go types
// of the API have, and the pairs.
func cutMapHead(b []byte) (n int, pairs []byte) {
	if b[0] == mapHead|24 {
		return int(b[1]), b[2:]
	}
	return int(b[0] &^ mapHead), b[1:]
}

// AppendEventCBOR appends a metav1.WatchEvent. object is encoded, with the tag.
func AppendEventCBOR(b []byte, t watch.EventType, object []byte) []byte {
	return append(append(b, eventHeads()[t]...), object...)
}

// eventHeads are what events have before their objects, by the type of the event.
var eventHeads = sync.OnceValue(func() map[watch.EventType][]byte {
	null := SelfDescribed([]byte{cborNull})
	heads := map[watch.EventType][]byte{}
	for _, t := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, watch.Error} {
		event, err := marshalCBOR(metav1.WatchEvent{Type: string(t), Object: runtime.RawExtension{Raw: null}})
		head, last := bytes.CutSuffix(event, null)
		if err != nil || !last {
			panic(fmt.Sprintf("event %s in CBOR: %x %v", t, event, err)) // every watch would fail
		}
		heads[t] = SelfDescribed(head)
	}
	return heads
})
