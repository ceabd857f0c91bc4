package rest

import (
	"iter"
	"strconv"
	"sync"

	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/sqlstore"
)

// messagesOf lends memory for the messages of a page's items.
var messagesOf = sync.Pool{New: func() any { return new([][]byte) }}

// protobuf writes the list from its items' messages. The envelope around the list begins with
// the list's length, so that all items are rendered before the first is written.
func (l *listWriter) protobuf() error {
	meta, err := l.typedMeta().Marshal()
	if err != nil {
		return err
	}
	items := messagesOf.Get().(*[][]byte)
	defer func() {
		clear(*items)
		messagesOf.Put(items)
	}()
	var size int
	if *items, size, err = l.messages((*items)[:0]); err != nil {
		return err
	}
	size += response.FieldSize(len(meta))
	kind, apiVersion := listKind(l.q)
	head, err := response.EnvelopeHead(apiVersion, kind, size)
	if err != nil {
		return err
	}
	size += len(head) + len(response.EnvelopeTail)
	if l.itemsFirst() {
		return l.streamFields(size, head, *items, 1, append(response.AppendField(nil, 2, meta), response.EnvelopeTail...))
	}
	return l.streamFields(size, response.AppendField(head, 1, meta), *items, 2, response.EnvelopeTail)
}

// itemsFirst tells whether the list's items are field 1 and its metadata is field 2. That is so
// for one list (k8s.io/apimachinery/pkg/apis/meta/v1beta1/generated.proto), in all others it is
// the other way round.
func (l *listWriter) itemsFirst() bool {
	return l.q.out.Form == response.AsMetadataList && l.q.out.MetaVersion.Version == "v1beta1"
}

// streamFields writes size bytes: head, the items as fields of one number, and tail. Items that
// are nil are rendered once more.
func (l *listWriter) streamFields(size int, head []byte, items [][]byte, number int, tail []byte) error {
	compress := size > response.GzipThreshold && response.Compresses(l.q.r)
	if !compress {
		l.q.w.Header()["Content-Length"] = []string{strconv.Itoa(size)}
	}
	again, stop := l.again(items)
	defer stop()
	s := response.NewStream(l.q.w, response.MediaProtobuf, compress)
	s.B = append(s.B, head...)
	for _, item := range items {
		if item == nil {
			var err error
			if item, err = again(); err != nil {
				l.q.w.Header().Del("Content-Length")
				return s.Fail(err)
			}
		}
		s.B = response.AppendField(s.B, number, item)
		if !s.More() {
			break
		}
	}
	s.B = append(s.B, tail...)
	s.End()
	return nil
}

// messages appends the entries' protobuf messages to items, and returns their size as fields. An item is nil if its
// message would be in memory only for this list and gatherBytes are used up.
func (l *listWriter) messages(items [][]byte) ([][]byte, int, error) {
	r := l.rendering(response.Protobuf)
	size, spare := 0, 0
	for e, err := range l.q.fetched(l.q.ctx, l.p.entries) {
		if err != nil {
			return items, 0, err
		}
		item, err := r.Of(e)
		if err != nil {
			return items, 0, err
		}
		size += response.FieldSize(len(item))
		if e != l.p.entries[len(items)] {
			if spare += len(item); spare > gatherBytes {
				item = nil
			}
		}
		items = append(items, item)
	}
	return items, size, nil
}

// again returns message, which renders the next item that is nil, and stop, which the caller must call when it is done.
func (l *listWriter) again(items [][]byte) (message func() ([]byte, error), stop func()) {
	var missing []*sqlstore.Entry
	for i, item := range items {
		if item == nil {
			missing = append(missing, l.p.entries[i])
		}
	}
	if missing == nil {
		return nil, func() {}
	}
	r := l.rendering(response.Protobuf)
	next, stop := iter.Pull2(l.q.fetched(l.q.sending(), missing))
	return func() ([]byte, error) {
		e, err, _ := next()
		if err != nil {
			return nil, err
		}
		return r.Of(e)
	}, stop
}
