package response

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apirest "k8s.io/apiserver/pkg/registry/rest"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore"
)

// Tables renders entries of one Kind as Tables. Rows are made anew for each request, because
// cells such as the age depend on the moment.
type Tables struct {
	Kind        *kind.Kind
	Version     string                 // of the objects in rows
	MetaVersion schema.GroupVersion    // of the Table, and of the metadata in rows
	Columns     apirest.TableConvertor // the Kind's, or a subresource's
	Include     metav1.IncludeObjectPolicy
}

// Of returns a Table with the rows of entries, which end with an error if one cannot be had.
func (t *Tables) Of(entries iter.Seq2[*sqlstore.Entry, error]) (*metav1.Table, error) {
	table := &metav1.Table{}
	table.APIVersion, table.Kind = t.MetaVersion.String(), "Table"
	empty := true
	for e, err := range entries {
		if err == nil {
			err = t.addRows(table, e)
		}
		if err != nil {
			return nil, err
		}
		empty = false
	}
	if empty {
		return table, t.columns(table)
	}
	return table, nil
}

// AppendRows appends an entry's rows, which are not the first of their Table, as JSON.
func (t *Tables) AppendRows(b []byte, e *sqlstore.Entry) ([]byte, error) {
	var table metav1.Table
	if err := t.addRows(&table, e); err != nil {
		return b, err
	}
	for i := range table.Rows {
		row, err := json.Marshal(&table.Rows[i])
		if err != nil {
			return b, err
		}
		b = append(append(b, ','), row...)
	}
	return b, nil
}

// columns gives a table without rows the headers, and the rows, of an empty list: some of
// upstream's convertors return null for its rows, others an empty list.
func (t *Tables) columns(table *metav1.Table) error {
	empty, err := t.convert(t.Kind.Codec.NewList())
	if err == nil {
		table.ColumnDefinitions, table.Rows = empty.ColumnDefinitions, empty.Rows
	}
	return err
}

func (t *Tables) addRows(table *metav1.Table, e *sqlstore.Entry) error {
	obj, err := Load(t.Kind, e)
	if err != nil {
		return err
	}
	one, err := t.convert(obj)
	if err != nil {
		return err
	}
	if table.ColumnDefinitions == nil {
		table.ColumnDefinitions = one.ColumnDefinitions
		table.ResourceVersion = one.ResourceVersion
	}
	raw, err := t.rowObject(e)
	if err != nil {
		return err
	}
	for _, row := range one.Rows {
		row.Object = runtime.RawExtension{Raw: raw}
		table.Rows = append(table.Rows, row)
	}
	return nil
}

// rowObject is what each row of an entry includes of its object.
func (t *Tables) rowObject(e *sqlstore.Entry) ([]byte, error) {
	switch t.Include {
	case metav1.IncludeNone:
		return nil, nil
	case metav1.IncludeObject:
		return Object(t.Kind, e, t.Version, JSON)
	}
	return MetadataRendering(t.Kind, t.MetaVersion, JSON).Of(e)
}

// convert passes no options: upstream's option for a table without headers cannot be set by a
// request.
func (t *Tables) convert(obj runtime.Object) (*metav1.Table, error) {
	return t.Columns.ConvertToTable(context.Background(), obj, &metav1.TableOptions{})
}

// OfView returns a Table of a subresource's body: view is its hub form, body its versioned
// form, which a row may include.
func (t *Tables) OfView(view, body runtime.Object) (*metav1.Table, error) {
	table, err := t.convert(view)
	if err != nil {
		return nil, err
	}
	table.APIVersion, table.Kind = t.MetaVersion.String(), "Table"
	for i := range table.Rows {
		row := &table.Rows[i].Object
		switch t.Include {
		case metav1.IncludeNone:
			row.Object = nil
		case metav1.IncludeObject:
			row.Object = body
		default:
			if row.Object, err = Metadata(view, t.MetaVersion); err != nil {
				return nil, err
			}
		}
	}
	return table, nil
}

// IncludeObject reads the option of Tables of that name; upstream's default is Metadata.
func IncludeObject(values url.Values) (metav1.IncludeObjectPolicy, error) {
	switch p := metav1.IncludeObjectPolicy(values.Get("includeObject")); p {
	case "":
		return metav1.IncludeMetadata, nil
	case metav1.IncludeObject, metav1.IncludeMetadata, metav1.IncludeNone:
		return p, nil
	default:
		return "", apierrors.NewBadRequest(fmt.Sprintf(
			`Unable to convert to Table as requested: includeObject: Invalid value: %q: must be 'Metadata', 'Object', 'None', or empty`, string(p)))
	}
}
