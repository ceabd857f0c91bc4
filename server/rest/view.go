package rest

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore"
)

// respondView answers with a subresource's body made from the object.
func (q *request) respondView(code int, entry *sqlstore.Entry) error {
	obj, err := q.load(entry)
	if err != nil {
		return err
	}
	view, err := q.sub.View(obj)
	if err != nil {
		return err
	}
	return q.respondHub(code, q.sub.Codec, view)
}

// respondHub answers with an object in hub form that is not in the log.
func (q *request) respondHub(code int, codec kind.Codec, hub runtime.Object) error {
	body, err := codec.Versioned(hub, q.gvk().GroupVersion())
	if err != nil {
		return err
	}
	switch q.out.form {
	case asTable:
		body, err = q.viewTable(hub, body)
	case asMetadata:
		body, err = q.viewMetadata(hub)
	case asMetadataList:
		err = q.misfit(hub)
	}
	if err != nil {
		return err
	}
	return q.respondObject(code, body)
}

// viewTable renders a view, in hub form, as a Table; body is what a row may include.
func (q *request) viewTable(view, body runtime.Object) (runtime.Object, error) {
	include, err := includeObject(q.values())
	if err != nil {
		return nil, err
	}
	table, err := q.convert(view)
	if err != nil {
		return nil, err
	}
	table.APIVersion, table.Kind = q.out.metaGV.String(), "Table"
	for i := range table.Rows {
		row := &table.Rows[i].Object
		switch include {
		case metav1.IncludeNone:
			row.Object = nil
		case metav1.IncludeObject:
			row.Object = body
		default:
			if row.Object, err = q.viewMetadata(view); err != nil {
				return nil, err
			}
		}
	}
	return table, nil
}

func (q *request) viewMetadata(view runtime.Object) (runtime.Object, error) {
	m, err := meta.Accessor(view)
	if err != nil {
		return nil, err
	}
	partial := meta.AsPartialObjectMetadata(m)
	partial.APIVersion, partial.Kind = q.out.metaGV.String(), "PartialObjectMetadata"
	return partial, nil
}
