package rest

import (
	"encoding/json"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/sqlstore"
)

// respondList writes a page in the negotiated encoding.
func (q *request) respondList(p page) (err error) {
	if p.entries, err = q.converted(p.entries); err != nil {
		return err
	}
	switch {
	case q.out.form == asMetadata:
		return q.misfit(q.kind.Codec.NewList())
	}
	q.auditBody(func(q *request) ([]byte, error) { return q.listAudited(p) })
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

// listAudited is the list, in JSON, for the audit log.
func (q *request) listAudited(p page) ([]byte, error) {
	if q.out.form == asTable {
		return q.tableOf(&p, p.entries, q.out)
	}
	return q.listJSON(p)
}

// listHead is everything of a JSON list before its items.
func (q *request) listHead(p page) []byte {
	kind, apiVersion := q.listKind()
	b := make([]byte, 0, 256)
	b = append(b, `{"kind":"`...)
	b = append(b, kind...)
	b = append(b, `","apiVersion":"`...)
	b = append(b, apiVersion...)
	b = append(b, `","metadata":`...)
	var meta []byte // encoding it cannot fail: strings and a number
	if q.kind.TypedItems && q.out.form == asObject {
		meta, _ = json.Marshal(untypedMeta(*p.meta()))
	} else {
		meta, _ = json.Marshal(p.meta())
	}
	b = append(b, meta...)
	return append(b, `,"items":`...)
}

func (q *request) listKind() (kind, apiVersion string) {
	if q.out.form == asMetadataList {
		return "PartialObjectMetadataList", q.out.metaGV.String()
	}
	return q.kind.ListKind, q.kind.GVK(q.version).GroupVersion().String()
}

// untypedMeta is the metadata of a list of custom resources, which has a token even if it
// is empty.
type untypedMeta metav1.ListMeta

// MarshalJSON implements json.Marshaler.
func (m untypedMeta) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Continue           string `json:"continue"`
		RemainingItemCount *int64 `json:"remainingItemCount,omitempty"`
		ResourceVersion    string `json:"resourceVersion"`
	}{m.Continue, m.RemainingItemCount, m.ResourceVersion})
}

func (p *page) meta() *metav1.ListMeta {
	if p.unversioned {
		return &metav1.ListMeta{}
	}
	return &metav1.ListMeta{
		ResourceVersion:    strconv.FormatInt(p.revision, 10),
		Continue:           p.next,
		RemainingItemCount: p.remaining,
	}
}

// jsonItems gives the bytes of a page's items, each in two parts. Items of a built-in list
// are without kind and apiVersion, as upstream's typed lists are.
func (q *request) jsonItems() func(e *sqlstore.Entry) (open, rest []byte, err error) {
	stored := q.version == q.kind.Stored.Version && q.kind.Group == q.kind.Stored.Group
	r := objectRendering(q.kind, q.version, false)
	switch {
	case q.out.form == asMetadataList:
		r = metadataRendering(q.kind, q.out.metaGV, false)
		return func(e *sqlstore.Entry) ([]byte, []byte, error) { return whole(r.of(e)) }
	case q.kind.TypedItems:
		return func(e *sqlstore.Entry) ([]byte, []byte, error) {
			if asStored(q.kind, e, q.version) {
				return nil, e.JSON, nil
			}
			return whole(r.of(e))
		}
	case stored:
		return func(e *sqlstore.Entry) ([]byte, []byte, error) { open, rest := e.Item(); return open, rest, nil }
	}
	return func(e *sqlstore.Entry) ([]byte, []byte, error) {
		b, err := r.of(e)
		if err != nil {
			return nil, nil, err
		}
		open, rest := sqlstore.WithoutType(b)
		return open, rest, nil
	}
}

func whole(b []byte, err error) ([]byte, []byte, error) { return nil, b, err }

// listEnds are what stands before the first item and after the last. Upstream's list of
// metadata without items has null for them.
func (q *request) listEnds(p page) (head, tail []byte) {
	head = q.listHead(p)
	if q.out.form == asMetadataList && len(p.entries) == 0 {
		return append(head, "null"...), []byte("}\n")
	}
	return append(head, '['), []byte("]}\n")
}

// streamList writes a JSON list piece by piece from the entries' own bytes.
func (q *request) streamList(p page) error {
	item := q.jsonItems()
	head, tail := q.listEnds(p)
	size := len(head) + len(tail)
	compress := acceptsGzip(q.r)
	stored := q.out.form == asObject && q.version == q.kind.Stored.Version && q.kind.Stale == nil
	for _, e := range p.entries { // so that errors come before the first byte
		if stored && (!compress || size > gzipThreshold) {
			break
		}
		open, rest, err := item(e)
		if err != nil {
			return err
		}
		size += len(open) + len(rest) + len(",")
	}
	if len(p.entries) > 0 {
		size -= len(",")
	}
	s := startStream(q.w, mediaJSON, compress && size > gzipThreshold)
	defer s.end()
	s.b = append(s.b, head...)
	for i, e := range p.entries {
		if i > 0 {
			s.b = append(s.b, ',')
		}
		open, rest, err := item(e)
		if err != nil {
			panic(http.ErrAbortHandler) // headers are out; the client must not take this for a list
		}
		s.b = append(append(s.b, open...), rest...)
		if !s.more() {
			return nil
		}
	}
	s.b = append(s.b, tail...)
	return nil
}

// listJSON is the list as one piece, for what has to be indented or turned into YAML.
func (q *request) listJSON(p page) ([]byte, error) {
	item := q.jsonItems()
	b, tail := q.listEnds(p)
	for i, e := range p.entries {
		if i > 0 {
			b = append(b, ',')
		}
		open, rest, err := item(e)
		if err != nil {
			return nil, err
		}
		b = append(append(b, open...), rest...)
	}
	return append(b, tail[:len(tail)-1]...), nil
}
