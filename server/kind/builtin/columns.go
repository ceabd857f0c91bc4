package builtin

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	apirest "k8s.io/apiserver/pkg/registry/rest"
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
