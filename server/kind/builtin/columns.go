package builtin

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apirest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration"
	"k8s.io/kubernetes/pkg/printers"
	"k8s.io/kubernetes/pkg/printers/internalversion"
	printerstorage "k8s.io/kubernetes/pkg/printers/storage"
)

// columns is upstream's one table of columns for all kinds.
var columns = sync.OnceValue(func() apirest.TableConvertor {
	return printerstorage.TableConvertor{TableGenerator: printers.NewTableGenerator().With(internalversion.AddHandlers)}
})

// nameAndCreated are the columns of resources for which upstream has none of their own.
func nameAndCreated(group, resource string) apirest.TableConvertor {
	return apirest.NewDefaultTableConvertor(schema.GroupResource{Group: group, Resource: resource})
}

// apiServiceColumns are the columns of apiservices. Upstream has them in the aggregator's
// storage, not with the columns of other kinds.
type apiServiceColumns struct{}

var metadataHelp = metav1.ObjectMeta{}.SwaggerDoc()

func (apiServiceColumns) ConvertToTable(_ context.Context, obj, _ runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: metadataHelp["name"]},
		{Name: "Service", Type: "string", Description: "The reference to the service that hosts this API endpoint."},
		{Name: "Available", Type: "string", Description: "Whether this service is available."},
		{Name: "Age", Type: "string", Description: metadataHelp["creationTimestamp"]},
	}}
	if list, err := meta.ListAccessor(obj); err == nil {
		table.ResourceVersion = list.GetResourceVersion()
		table.Continue = list.GetContinue()
		table.RemainingItemCount = list.GetRemainingItemCount()
	} else if m, err := meta.CommonAccessor(obj); err == nil {
		table.ResourceVersion = m.GetResourceVersion()
	}
	var err error
	table.Rows, err = metatable.MetaToTableRow(obj, apiServiceCells)
	return table, err
}

func apiServiceCells(obj runtime.Object, _ metav1.Object, name, age string) ([]any, error) {
	svc := obj.(*apiregistration.APIService)
	host := "Local"
	if ref := svc.Spec.Service; ref != nil {
		host = ref.Namespace + "/" + ref.Name
	}
	return []any{name, host, availability(svc), age}, nil
}

func availability(svc *apiregistration.APIService) string {
	for _, c := range svc.Status.Conditions {
		if c.Type != apiregistration.Available {
			continue
		}
		if c.Status != apiregistration.ConditionTrue && c.Reason != "" {
			return string(c.Status) + " (" + c.Reason + ")"
		}
		return string(c.Status)
	}
	return string(apiregistration.ConditionUnknown)
}
