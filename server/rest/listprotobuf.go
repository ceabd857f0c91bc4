package rest

import (
	"strconv"
	"sync"

	"github.com/plinth-io/plinth/server/response"
)

// messagesOf lends memory for the messages of a page's items.
var messagesOf = sync.Pool{New: func() any { return new([][]byte) }}

// protobuf writes the list from its items' messages. The envelope around the list begins with
// the list's length, which is known because all items are there.
func (l *listWriter) protobuf() error {
	meta, err := l.p.meta().Marshal()
	if err != nil {
		return err
	}
	items := messagesOf.Get().(*[][]byte)
	defer func() {
		clear(*items)
		messagesOf.Put(items)
	}()
	if *items, err = l.messages((*items)[:0]); err != nil {
		return err
	}
	size := response.FieldSize(len(meta))
	for _, item := range *items {
		size += response.FieldSize(len(item))
	}
	kind, apiVersion := listKind(l.q)
	head, err := response.EnvelopeHead(apiVersion, kind, size)
	if err != nil {
		return err
	}
	size += len(head) + len(response.EnvelopeTail)
	if l.itemsFirst() {
		l.streamFields(size, head, *items, 1, append(response.AppendField(nil, 2, meta), response.EnvelopeTail...))
	} else {
		l.streamFields(size, response.AppendField(head, 1, meta), *items, 2, response.EnvelopeTail)
	}
	return nil
}

// itemsFirst tells whether the list's items are field 1 and its metadata is field 2. That is so
// for one list (k8s.io/apimachinery/pkg/apis/meta/v1beta1/generated.proto), in all others it is
// the other way round.
func (l *listWriter) itemsFirst() bool {
	return l.q.out.Form == response.AsMetadataList && l.q.out.MetaVersion.Version == "v1beta1"
}

// streamFields writes size bytes: head, the items as fields of one number, and tail.
func (l *listWriter) streamFields(size int, head []byte, items [][]byte, number int, tail []byte) {
	compress := size > response.GzipThreshold && response.AcceptsGzip(l.q.r)
	if !compress {
		l.q.w.Header()["Content-Length"] = []string{strconv.Itoa(size)}
	}
	s := response.StartStream(l.q.w, response.MediaProtobuf, compress)
	defer s.End()
	s.B = append(s.B, head...)
	for _, item := range items {
		s.B = response.AppendField(s.B, number, item)
		if !s.More() {
			return
		}
	}
	s.B = append(s.B, tail...)
}

// messages appends the entries' messages to items.
func (l *listWriter) messages(items [][]byte) ([][]byte, error) {
	r := response.ObjectRendering(l.q.kind, l.q.version, true)
	if l.q.out.Form == response.AsMetadataList {
		r = response.MetadataRendering(l.q.kind, l.q.out.MetaVersion, true)
	}
	for _, e := range l.p.entries {
		item, err := r.Of(e)
		if err != nil {
			return items, err
		}
		items = append(items, item)
	}
	return items, nil
}
