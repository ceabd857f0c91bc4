package rest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// respondList writes a page in the negotiated encoding.
func (q *request) respondList(p page) (err error) {
	if p.entries, err = q.converted(q.ctx, p.entries); err != nil {
		return err
	}
	if q.out.Form == response.AsMetadata {
		return q.out.WrongForm(q.kind.Codec.NewList())
	}
	l := listWriter{q, p}
	q.auditBody(func(plain response.Output) ([]byte, error) { return l.audited(plain) })
	switch {
	case q.out.Form == response.AsTable:
		return l.table()
	case q.out.MediaType == response.MediaProtobuf:
		return l.protobuf()
	case q.out.MediaType == response.MediaCBOR:
		return l.cbor()
	case q.out.MediaType == response.MediaJSON && !q.out.Pretty:
		return l.stream()
	}
	return l.text()
}

// listWriter writes one page of a list.
type listWriter struct {
	q *request
	p page
}

// audited is the list, in JSON, for the audit log.
func (l *listWriter) audited(plain response.Output) ([]byte, error) {
	if plain.Form == response.AsTable {
		return l.tableOf(l.p.entries, plain)
	}
	return l.json()
}

// head is the JSON list up to its items.
func (l *listWriter) head() []byte {
	kind, apiVersion := listKind(l.q)
	b := make([]byte, 0, 256)
	b = append(b, `{"kind":"`...)
	b = append(b, kind...)
	b = append(b, `","apiVersion":"`...)
	b = append(b, apiVersion...)
	b = append(b, `","metadata":`...)
	meta, _ := json.Marshal(l.meta()) // encoding strings and a number cannot fail
	b = append(b, meta...)
	return append(b, `,"items":`...)
}

// listKind is small enough to be inlined, which saves an allocation.
func listKind(q *request) (kind, apiVersion string) {
	if q.out.Form == response.AsMetadataList {
		return "PartialObjectMetadataList", q.out.MetaVersion.String()
	}
	return q.kind.ListKind, q.kind.GVK(q.version).GroupVersion().String()
}

// meta is the list's metadata.
func (l *listWriter) meta() any {
	m := l.typedMeta()
	if l.q.kind.TypedItems && l.q.out.Form == response.AsObject {
		return untypedMeta{m.Continue, m.RemainingItemCount, m.ResourceVersion}
	}
	return m
}

// typedMeta is the metadata of a list that upstream has a type for. As in upstream, lists of objects say which shard they are.
func (l *listWriter) typedMeta() *metav1.ListMeta {
	m := l.p.meta()
	if l.q.out.Form == response.AsObject {
		m.ShardInfo = l.p.shard
	}
	return m
}

// untypedMeta is the metadata of a list of custom resources, which has a continue token even if
// the token is empty.
type untypedMeta struct {
	Continue           string `json:"continue"`
	RemainingItemCount *int64 `json:"remainingItemCount,omitempty"`
	ResourceVersion    string `json:"resourceVersion"`
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

// items returns a function for the bytes of an item, in two parts. Items of a built-in list are
// without kind and apiVersion, as upstream's typed lists are.
func (l *listWriter) items() func(e *sqlstore.Entry) (open, rest []byte, err error) {
	q := l.q // captured below instead of l, which then need not be on the heap
	r := l.rendering(response.JSON)
	switch {
	case q.out.Form == response.AsMetadataList:
		return func(e *sqlstore.Entry) ([]byte, []byte, error) { return whole(r.Of(e)) }
	case q.kind.TypedItems:
		return func(e *sqlstore.Entry) ([]byte, []byte, error) {
			if response.IsStoredAs(q.kind, e, q.version) {
				return nil, e.Value, nil
			}
			return whole(r.Of(e))
		}
	}
	return func(e *sqlstore.Entry) ([]byte, []byte, error) {
		b := e.Value
		if !response.IsStoredAs(q.kind, e, q.version) {
			var err error
			if b, err = r.Of(e); err != nil {
				return nil, nil, err
			}
		}
		open, rest := object.WithoutType(b)
		return open, rest, nil
	}
}

// rendering is how items are rendered.
func (l *listWriter) rendering(encoding response.Encoding) *response.Rendering {
	if l.q.out.Form == response.AsMetadataList {
		return response.MetadataRendering(l.q.kind, l.q.out.MetaVersion, encoding)
	}
	return response.ObjectRendering(l.q.kind, l.q.version, encoding)
}

func whole(b []byte, err error) ([]byte, []byte, error) { return nil, b, err }

// ends are the list before its first item and after its last. An empty list of metadata has null
// for its items, as upstream's has.
func (l *listWriter) ends() (head, tail []byte) {
	head = l.head()
	if l.q.out.Form == response.AsMetadataList && len(l.p.entries) == 0 {
		return append(head, "null"...), []byte("}\n")
	}
	return append(head, '['), []byte("]}\n")
}

// stream writes a JSON list piece by piece from the entries' own bytes.
func (l *listWriter) stream() error {
	item := l.items()
	head, tail := l.ends()
	if err := l.renderHeld(item); err != nil {
		return err
	}
	first := true
	return l.send(head, l.p.entries, tail, func(b []byte, e *sqlstore.Entry) ([]byte, error) {
		open, rest, err := item(e)
		if err != nil {
			return b, err
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		return append(append(b, open...), rest...), nil
	})
}

// cbor writes a CBOR list piece by piece from the renderings of its items.
func (l *listWriter) cbor() error {
	n := len(l.p.entries)
	if n == 0 && l.q.out.Form == response.AsMetadataList {
		n = -1 // see ends
	}
	kind, apiVersion := listKind(l.q)
	head, err := response.ListHeadCBOR(apiVersion, kind, l.meta(), n)
	if err != nil {
		return err
	}
	r := l.rendering(response.CBOR)
	if err := l.renderHeld(func(e *sqlstore.Entry) ([]byte, []byte, error) { return whole(r.Of(e)) }); err != nil {
		return err
	}
	return l.send(head, l.p.entries, nil, func(b []byte, e *sqlstore.Entry) ([]byte, error) {
		item, err := r.Of(e)
		return append(b, item...), err
	})
}

// send writes head, then for each entry what add appends, then tail.
func (l *listWriter) send(head []byte, entries []*sqlstore.Entry, tail []byte, add func([]byte, *sqlstore.Entry) ([]byte, error)) error {
	s := response.NewStream(l.q.w, l.q.out.MediaType, response.Compresses(l.q.r))
	s.B = append(s.B, head...)
	for e, err := range l.q.fetched(l.q.sending(), entries) {
		if err == nil {
			s.B, err = add(s.B, e)
		}
		if err != nil {
			return s.Fail(err)
		}
		if !s.More() {
			break
		}
	}
	s.B = append(s.B, tail...)
	s.End()
	return nil
}

// renderHeld renders the items whose values are in memory before the first byte is written, so that an error can still
// be answered with its status. Entries keep their renderings. A list whose objects are served as stored skips this:
// looking for objects in another version would read all values twice, which takes a fifth of such a list's time.
func (l *listWriter) renderHeld(item func(*sqlstore.Entry) (open, rest []byte, err error)) error {
	if l.q.out.Plain() && l.q.version == l.q.kind.Stored.Version && l.q.kind.Custom == nil {
		return nil
	}
	for _, e := range l.p.entries {
		if e.Value == nil {
			continue
		}
		if _, _, err := item(e); err != nil {
			return err
		}
	}
	return nil
}

// tableRows is the number of objects up to which a Table is made in one piece: the size of kubectl's pages.
const tableRows = 500

// table writes the page as a Table. The rows of a long one are made while they are written.
func (l *listWriter) table() error {
	out := l.q.out
	first, later := l.p.entries, []*sqlstore.Entry(nil)
	if len(first) > tableRows && out.MediaType == response.MediaJSON && !out.Pretty {
		first, later = first[:tableRows], first[tableRows:]
	}
	body, err := l.tableOf(first, out)
	if err != nil {
		return err
	}
	if len(later) == 0 {
		response.WriteBody(l.q.w, l.q.r, http.StatusOK, out.MediaType, body)
		return nil
	}
	tables, err := l.q.tables()
	if err != nil {
		return err
	}
	return l.send(bytes.TrimSuffix(body, tableEnd), later, tableEnd, tables.AppendRows)
}

// tableEnd is what a Table has after its last row.
var tableEnd = []byte("]}\n")

// tableOf renders entries of the page as a finished Table.
func (l *listWriter) tableOf(entries []*sqlstore.Entry, out response.Output) ([]byte, error) {
	return l.q.tableOf(l.p.meta(), l.q.fetched(l.q.ctx, entries), out)
}

// json is the list in one piece.
func (l *listWriter) json() ([]byte, error) {
	item := l.items()
	b, tail := l.ends()
	from := len(b)
	for e, err := range l.q.fetched(l.q.ctx, l.p.entries) {
		if err != nil {
			return nil, err
		}
		if len(b) > from {
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
