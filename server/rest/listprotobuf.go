package rest

import (
	"encoding/binary"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plinth-io/plinth/sqlstore"
)

// messagesOf lends memory for a page's items.
var messagesOf = sync.Pool{New: func() any { return new([][]byte) }}

// respondListProtobuf puts the items' messages together to the list's. The envelope around
// them has the length of the whole before its first byte; as the items are all there, it
// is known.
func (q *request) respondListProtobuf(p page) error {
	meta, err := p.meta().Marshal()
	if err != nil {
		return err
	}
	items := messagesOf.Get().(*[][]byte)
	defer func() {
		clear(*items)
		messagesOf.Put(items)
	}()
	if *items, err = q.protobufItems((*items)[:0], p.entries); err != nil {
		return err
	}
	size := fieldSize(len(meta))
	for _, item := range *items {
		size += fieldSize(len(item))
	}
	kind, apiVersion := q.listKind()
	head, err := envelopeHead(apiVersion, kind, size)
	if err != nil {
		return err
	}
	size += len(head) + len(envelopeTail)
	if q.itemsFirst() {
		q.streamFields(size, head, *items, 1, append(appendField(nil, 2, meta), envelopeTail...))
	} else {
		q.streamFields(size, appendField(head, 1, meta), *items, 2, envelopeTail)
	}
	return nil
}

// itemsFirst tells the one list from all others: its items are field 1 and its metadata is
// field 2 (k8s.io/apimachinery/pkg/apis/meta/v1beta1/generated.proto).
func (q *request) itemsFirst() bool {
	return q.out.form == asMetadataList && q.out.metaGV.Version == "v1beta1"
}

// streamFields writes size bytes: head, the items as fields of one number, and tail.
func (q *request) streamFields(size int, head []byte, items [][]byte, number int, tail []byte) {
	compress := size > gzipThreshold && acceptsGzip(q.r)
	if !compress {
		q.w.Header()["Content-Length"] = []string{strconv.Itoa(size)}
	}
	s := startStream(q.w, mediaProtobuf, compress)
	defer s.end()
	s.b = append(s.b, head...)
	for _, item := range items {
		s.b = appendField(s.b, number, item)
		if !s.more() {
			return
		}
	}
	s.b = append(s.b, tail...)
}

// protobufItems appends the entries' messages to items.
func (q *request) protobufItems(items [][]byte, entries []*sqlstore.Entry) ([][]byte, error) {
	r := objectRendering(q.kind, q.version, true)
	if q.out.form == asMetadataList {
		r = metadataRendering(q.kind, q.out.metaGV, true)
	}
	for _, e := range entries {
		item, err := r.of(e)
		if err != nil {
			return items, err
		}
		items = append(items, item)
	}
	return items, nil
}

// envelopeHead is what envelope writes before a message of a size, envelopeTail what comes
// after it: two empty fields.
func envelopeHead(apiVersion, kind string, size int) ([]byte, error) {
	meta := runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}
	raw, err := meta.Marshal()
	if err != nil {
		return nil, err
	}
	b := append([]byte{}, protobufMagic...)
	b = append(appendField(b, 1, raw), fieldTag(2))
	return binary.AppendUvarint(b, uint64(size)), nil
}

var envelopeTail = appendField(appendField(nil, 3, nil), 4, nil)

// fieldTag of a length-delimited protobuf field.
func fieldTag(number int) byte { return byte(number<<3 | 2) }

func appendField(b []byte, number int, value []byte) []byte {
	b = append(b, fieldTag(number))
	b = binary.AppendUvarint(b, uint64(len(value)))
	return append(b, value...)
}

// fieldSize is how much appendField appends for a value of length bytes.
func fieldSize(length int) int {
	size := 2 + length
	for n := length >> 7; n > 0; n >>= 7 {
		size++
	}
	return size
}
