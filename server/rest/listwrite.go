package rest

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/sqlstore"
)

// respondList writes a page in the negotiated encoding.
func (q *request) respondList(p page) error {
	switch {
	case q.out.form == asTable:
		body, err := q.tableOf(&p, p.entries, q.out)
		if err != nil {
			return err
		}
		writeBody(q.w, q.r, http.StatusOK, q.out.mediaType, body)
		return nil
	case q.out.mediaType == mediaProtobuf:
		return q.respondListProtobuf(p)
	case q.out.mediaType == mediaJSON && !q.out.pretty:
		return q.streamList(p)
	}
	body, err := q.listJSON(p)
	if err != nil {
		return err
	}
	if body, err = dress(body, q.out); err != nil {
		return err
	}
	writeBody(q.w, q.r, http.StatusOK, q.out.mediaType, body)
	return nil
}

// listHead is everything of a JSON list before its first item.
func (q *request) listHead(p page) []byte {
	kind, apiVersion := q.listKind()
	b := make([]byte, 0, 256)
	b = append(b, `{"kind":"`...)
	b = append(b, kind...)
	b = append(b, `","apiVersion":"`...)
	b = append(b, apiVersion...)
	b = append(b, `","metadata":`...)
	meta, _ := json.Marshal(p.meta()) // cannot fail: strings and a number
	b = append(b, meta...)
	return append(b, `,"items":[`...)
}

func (q *request) listKind() (kind, apiVersion string) {
	if q.out.form == asMetadata {
		return "PartialObjectMetadataList", q.out.metaGV.String()
	}
	return q.kind.ListKind, q.kind.GVK(q.version).GroupVersion().String()
}

func (p *page) meta() *metav1.ListMeta {
	return &metav1.ListMeta{
		ResourceVersion:    strconv.FormatInt(p.revision, 10),
		Continue:           p.next,
		RemainingItemCount: p.remaining,
	}
}

var listTail = []byte("]}\n")

// item gives the bytes of one item in two parts. Items of a built-in list are without
// kind and apiVersion, as upstream's typed lists are.
func (q *request) item(e *sqlstore.Entry) (open, rest []byte, err error) {
	if q.out.form == asMetadata {
		rest, err = metadataOf(e, q.out.metaGV, false)
		return nil, rest, err
	}
	if q.kind.TypedItems {
		rest, err = objectJSON(q.kind, e, q.version)
		return nil, rest, err
	}
	if q.version == q.kind.Stored.Version && q.kind.Group == q.kind.Stored.Group {
		open, rest = e.Item()
		return open, rest, nil
	}
	b, err := objectJSON(q.kind, e, q.version)
	if err != nil {
		return nil, nil, err
	}
	open, rest = sqlstore.WithoutType(b)
	return open, rest, nil
}

// chunk is what is collected before it goes to the connection: large enough that the
// cost of a write (a TLS record or several, an HTTP/2 frame) is small against its bytes.
const chunk = 64 << 10

var chunks = sync.Pool{New: func() any {
	b := make([]byte, 0, chunk+16<<10)
	return &b
}}

// streamList writes a JSON list piece by piece from the entries' own bytes.
func (q *request) streamList(p page) error {
	rendered := q.out.form == asObject && q.version == q.kind.Stored.Version
	if !rendered {
		for _, e := range p.entries { // so that errors come before the first byte
			if _, _, err := q.item(e); err != nil {
				return err
			}
		}
	}
	q.w.Header()["Content-Type"] = contentTypes[mediaJSON]
	var w io.Writer = q.w
	if listSize(p.entries) > gzipThreshold && acceptsGzip(q.r) {
		gz := startGzip(q.w, http.StatusOK)
		defer endGzip(gz)
		w = gz
	} else {
		q.w.WriteHeader(http.StatusOK)
	}
	buf := chunks.Get().(*[]byte)
	defer chunks.Put(buf)
	b := append((*buf)[:0], q.listHead(p)...)
	for i, e := range p.entries {
		if i > 0 {
			b = append(b, ',')
		}
		open, rest, err := q.item(e)
		if err != nil {
			return nil // headers are out; the client sees a truncated body
		}
		b = append(append(b, open...), rest...)
		if len(b) >= chunk {
			if _, err := w.Write(b); err != nil {
				return nil // the client is gone
			}
			b = b[:0]
		}
	}
	w.Write(append(b, listTail...))
	if cap(b) <= 4*chunk {
		*buf = b[:0]
	}
	return nil
}

func listSize(entries []*sqlstore.Entry) int {
	n := 0
	for _, e := range entries {
		if n += len(e.JSON); n > gzipThreshold {
			break
		}
	}
	return n
}

// listJSON is the list as one piece, for what has to be indented or turned into YAML.
func (q *request) listJSON(p page) ([]byte, error) {
	b := q.listHead(p)
	for i, e := range p.entries {
		if i > 0 {
			b = append(b, ',')
		}
		open, rest, err := q.item(e)
		if err != nil {
			return nil, err
		}
		b = append(append(b, open...), rest...)
	}
	return append(b, "]}"...), nil
}

// respondListProtobuf puts the items' messages together to the list's: every Kubernetes
// list has its metadata as field 1 and its items as field 2.
func (q *request) respondListProtobuf(p page) error {
	meta, err := p.meta().Marshal()
	if err != nil {
		return err
	}
	raw := appendField(nil, 1, meta)
	for _, e := range p.entries {
		var item []byte
		if q.out.form == asMetadata {
			item, err = metadataOf(e, q.out.metaGV, true)
		} else {
			item, err = objectProtobuf(q.kind, e, q.version)
		}
		if err != nil {
			return err
		}
		raw = appendField(raw, 2, item)
	}
	kind, apiVersion := q.listKind()
	body, err := envelope(apiVersion, kind, raw)
	if err != nil {
		return err
	}
	writeBody(q.w, q.r, http.StatusOK, mediaProtobuf, body)
	return nil
}

// appendField appends a length-delimited protobuf field.
func appendField(b []byte, number int, value []byte) []byte {
	b = append(b, byte(number<<3|2))
	n := uint64(len(value))
	for n >= 0x80 {
		b = append(b, byte(n)|0x80)
		n >>= 7
	}
	return append(append(b, byte(n)), value...)
}
