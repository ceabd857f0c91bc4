package history

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	v1 "github.com/plinth-io/plinth/server/history/v1"
)

// columns are the columns that kubectl get shows for changes and versions.
type columns struct{}

var definitions = []metav1.TableColumnDefinition{
	{Name: "Revision", Type: "string", Format: "name", Description: "The resourceVersion that the object got with the change."},
	{Name: "Age", Type: "string", Description: "How long ago the change was committed."},
	{Name: "User", Type: "string", Description: "Who made the change; with impersonation, as whom."},
	{Name: "Action", Type: "string", Description: "What became of the object: created, changed or deleted."},
	{Name: "Object", Type: "string", Description: "The resource and the name of the object."},
	{Name: "Manager", Type: "string", Description: "The field manager of the change."},
	{Name: "Verb", Type: "string", Priority: 1, Description: "The verb of the request, and the subresource."},
	{Name: "Impersonator", Type: "string", Priority: 1, Description: "Who made the request as another user."},
	{Name: "Time", Type: "string", Priority: 1, Description: "When the change was committed."},
	{Name: "Audit-ID", Type: "string", Priority: 1, Description: "The id of the request in the audit log."},
}

// ConvertToTable implements rest.TableConvertor.
func (columns) ConvertToTable(_ context.Context, obj, _ runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{ColumnDefinitions: definitions, Rows: []metav1.TableRow{}}
	if list, err := meta.ListAccessor(obj); err == nil {
		table.ResourceVersion, table.Continue = list.GetResourceVersion(), list.GetContinue()
	} else if m, err := meta.CommonAccessor(obj); err == nil {
		table.ResourceVersion = m.GetResourceVersion()
	}
	add := func(obj runtime.Object) error {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells(description(obj)), Object: runtime.RawExtension{Object: obj}})
		return nil
	}
	if meta.IsListType(obj) {
		return table, meta.EachListItem(obj, add)
	}
	return table, add(obj)
}

func description(obj runtime.Object) *v1.Description {
	if v, ok := obj.(*v1.Version); ok {
		return &v.Description
	}
	return &obj.(*v1.Change).Description
}

func cells(d *v1.Description) []any {
	return []any{
		decimal(d.Revision), duration.HumanDuration(time.Since(d.Time.Time)), orNone(d.User), string(d.Action),
		d.Object.Resource + "/" + d.Object.Name, orNone(d.Manager),
		orNone(strings.TrimSpace(d.Verb + " " + d.Subresource)), orNone(d.Impersonator), d.Time.UTC().Format(time.RFC3339), orNone(d.AuditID),
	}
}

func orNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}
