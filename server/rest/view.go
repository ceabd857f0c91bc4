package rest

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plinth-io/plinth/sqlstore"
)

// respondView answers with a subresource's body made from the object.
func (q *request) respondView(code int, entry *sqlstore.Entry) error {
	obj, err := q.kind.Codec.Load(entry.JSON)
	if err != nil {
		return err
	}
	view, err := q.sub.View(obj)
	if err != nil {
		return err
	}
	body, err := q.sub.Codec.Versioned(view, q.sub.GVK.GroupVersion())
	if err != nil {
		return err
	}
	switch q.out.form {
	case asTable:
		table, err := q.viewTable(view, body)
		if err != nil {
			return err
		}
		return q.respondObject(code, table)
	case asMetadata:
		partial, err := q.viewMetadata(view)
		if err != nil {
			return err
		}
		return q.respondObject(code, partial)
	}
	return q.respondObject(code, body)
}

// viewTable renders a view, in hub form, as a Table; body is what a row may include.
func (q *request) viewTable(view, body runtime.Object) (*metav1.Table, error) {
	include, err := includeObject(q.values())
	if err != nil {
		return nil, err
	}
	table, err := q.convert(view, &metav1.TableOptions{NoHeaders: q.values().Get("noHeaders") == "true"})
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

func (q *request) viewMetadata(view runtime.Object) (*metav1.PartialObjectMetadata, error) {
	m, err := meta.Accessor(view)
	if err != nil {
		return nil, err
	}
	partial := meta.AsPartialObjectMetadata(m)
	partial.APIVersion, partial.Kind = q.out.metaGV.String(), "PartialObjectMetadata"
	return partial, nil
}
