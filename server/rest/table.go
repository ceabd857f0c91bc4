package rest

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plinth-io/plinth/sqlstore"
)

// badIncludeObject is upstream's answer to an unknown includeObject.
func badIncludeObject(value string) error {
	return errors.NewBadRequest(fmt.Sprintf(
		`Unable to convert to Table as requested: includeObject: Invalid value: %q: must be 'Metadata', 'Object', 'None', or empty`, value))
}

// tableOf renders entries as a Table. p is nil for a single object. Rows are made anew
// for each request, because cells such as the age depend on the moment.
func (q *request) tableOf(p *page, entries []*sqlstore.Entry, out output) ([]byte, error) {
	table, err := q.table(entries, out)
	if err != nil {
		return nil, err
	}
	if p != nil {
		table.ListMeta = *p.meta()
	}
	return encodeMeta(table, out)
}

func (q *request) table(entries []*sqlstore.Entry, out output) (*metav1.Table, error) {
	include, err := includeObject(q.values())
	if err != nil {
		return nil, err
	}
	table := &metav1.Table{}
	table.APIVersion, table.Kind = out.metaGV.String(), "Table"
	if len(entries) == 0 {
		err = q.columns(table)
	}
	for _, e := range entries {
		if err = q.appendRows(table, e, include, out); err != nil {
			break
		}
	}
	return table, err
}

// columns gives a table without rows its headers, from an empty list's. Some of upstream's
// have null for their rows, others none.
func (q *request) columns(table *metav1.Table) error {
	t, err := q.convert(q.kind.Codec.NewList())
	if err == nil {
		table.ColumnDefinitions, table.Rows = t.ColumnDefinitions, t.Rows
	}
	return err
}

func (q *request) appendRows(table *metav1.Table, e *sqlstore.Entry, include metav1.IncludeObjectPolicy, out output) error {
	obj, err := loadEntry(q.kind, e)
	if err != nil {
		return err
	}
	t, err := q.convert(obj)
	if err != nil {
		return err
	}
	if table.ColumnDefinitions == nil {
		table.ColumnDefinitions = t.ColumnDefinitions
		table.ResourceVersion = t.ResourceVersion
	}
	raw, err := q.rowObject(e, include, out)
	if err != nil {
		return err
	}
	for _, row := range t.Rows {
		row.Object = runtime.RawExtension{Raw: raw}
		table.Rows = append(table.Rows, row)
	}
	return nil
}

// convert leaves nothing out: upstream's option for a table without headers cannot be set
// by a request.
func (q *request) convert(obj runtime.Object) (*metav1.Table, error) {
	table := q.kind.Table
	if q.sub != nil && q.sub.Table != nil {
		table = q.sub.Table
	}
	return table.ConvertToTable(context.Background(), obj, &metav1.TableOptions{})
}

func (q *request) rowObject(e *sqlstore.Entry, include metav1.IncludeObjectPolicy, out output) ([]byte, error) {
	switch include {
	case metav1.IncludeNone:
		return nil, nil
	case metav1.IncludeObject:
		return objectJSON(q.kind, e, q.version)
	}
	return metadataRendering(q.kind, out.metaGV, false).of(e)
}
