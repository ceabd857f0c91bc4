package rest

import (
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/sqlstore"
)

// respondEntry answers with an entry of the request's own kind.
func (q *request) respondEntry(code int, e *sqlstore.Entry) error {
	if q.out.Form == response.AsMetadataList {
		return q.out.WrongForm(q.kind.Codec.New())
	}
	e, err := q.convertedEntry(q.ctx, e)
	if err != nil {
		return err
	}
	body, err := q.renderEntry(e, q.out)
	if err != nil {
		return err
	}
	q.auditBody(func(plain response.Output) ([]byte, error) { return q.renderEntry(e, plain) })
	if q.out.Plain() {
		response.WriteJSON(q.w, q.r, code, body)
		return nil
	}
	response.WriteBody(q.w, q.r, code, q.out.MediaType, body)
	return nil
}

// renderEntry returns the finished body for one object. For plain output that is the stored JSON,
// without the final newline.
func (q *request) renderEntry(e *sqlstore.Entry, out response.Output) ([]byte, error) {
	if out.Form == response.AsTable {
		return q.tableOf(nil, q.fetched(q.ctx, []*sqlstore.Entry{e}), out)
	}
	b, err := q.encodeEntry(e, out)
	if err != nil || out.Plain() || out.Encoding() != response.JSON {
		return b, err
	}
	return response.Finish(b, out)
}

// encodeEntry returns one object, or its metadata, in the form that bodies and events contain: JSON,
// protobuf in its envelope, or CBOR with its tag. It is not for Tables.
func (t *target) encodeEntry(e *sqlstore.Entry, out response.Output) ([]byte, error) {
	if out.Form == response.AsMetadata {
		return response.ObjectMetadata(t.kind, e, out.MetaVersion, out.Encoding())
	}
	return response.Object(t.kind, e, t.version, out.Encoding())
}

// respondObject answers with an object that is not in the log (a Scale, a review). It is in its
// external version, with kind and apiVersion set.
func (c *call) respondObject(code int, obj runtime.Object) error {
	body, err := response.Encode(obj, response.Output{MediaType: c.out.MediaType, Pretty: c.out.Pretty})
	if err != nil {
		return err
	}
	c.auditAnswer(obj)
	response.WriteBody(c.w, c.r, code, c.out.MediaType, body)
	return nil
}

// tables renders entries as the Tables that the request asks for.
func (q *request) tables() (response.Tables, error) {
	include, err := response.IncludeObject(q.values())
	t := response.Tables{Kind: q.kind, Version: q.version, MetaVersion: q.out.MetaVersion, Columns: q.kind.Table, Include: include}
	if q.sub != nil && q.sub.Table != nil {
		t.Columns = q.sub.Table
	}
	return t, err
}

// tableOf renders entries as a finished Table. list is nil for a single object.
func (q *request) tableOf(list *metav1.ListMeta, entries iter.Seq2[*sqlstore.Entry, error], out response.Output) ([]byte, error) {
	tables, err := q.tables()
	if err != nil {
		return nil, err
	}
	table, err := tables.Of(entries)
	if err != nil {
		return nil, err
	}
	if list != nil {
		table.ListMeta = *list
	}
	return response.Encode(table, out)
}
