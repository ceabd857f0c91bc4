package admission

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/admissionregistration"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/informers/networking"
	"k8s.io/client-go/informers/node"
	"k8s.io/client-go/informers/resource"
	"k8s.io/client-go/informers/scheduling"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/tools/cache"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// factory replaces the informer factory from which plugins take their listers. The listers
// read from the store, so there is no copy of the objects, no goroutine, and nothing to wait
// for. The embedded interface is nil: no plugin asks for the other groups.
type factory struct {
	informers.SharedInformerFactory
	store *sqlstore.Store
	own   map[reflect.Type]cache.SharedIndexInformer // used instead of listed
}

func (f *factory) InformerFor(obj runtime.Object, _ internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	t := reflect.TypeOf(obj)
	if own := f.own[t]; own != nil {
		return own
	}
	return &informer{indexer: listed[t](f.store)}
}

func (f *factory) Admissionregistration() admissionregistration.Interface {
	return admissionregistration.New(f, "", nil)
}
func (f *factory) Core() core.Interface             { return core.New(f, "", nil) }
func (f *factory) Networking() networking.Interface { return networking.New(f, "", nil) }
func (f *factory) Node() node.Interface             { return node.New(f, "", nil) }
func (f *factory) Resource() resource.Interface     { return resource.New(f, "", nil) }
func (f *factory) Scheduling() scheduling.Interface { return scheduling.New(f, "", nil) }
func (f *factory) Storage() storage.Interface       { return storage.New(f, "", nil) }

// informer replaces the informer of one type. The embedded interface is nil: plugins do not
// use its other methods.
type informer struct {
	cache.SharedIndexInformer
	indexer cache.Indexer
}

func (i *informer) GetIndexer() cache.Indexer { return i.indexer }
func (i *informer) HasSynced() bool           { return true }

// listed are the types that plugins list.
var listed = map[reflect.Type]func(*sqlstore.Store) cache.Indexer{
	reflect.TypeFor[*corev1.Namespace]():             kept[corev1.Namespace]("", "namespaces"),
	reflect.TypeFor[*corev1.LimitRange]():            kept[corev1.LimitRange]("", "limitranges"),
	reflect.TypeFor[*corev1.ServiceAccount]():        kept[corev1.ServiceAccount]("", "serviceaccounts"),
	reflect.TypeFor[*corev1.ResourceQuota]():         kept[corev1.ResourceQuota]("", "resourcequotas"),
	reflect.TypeFor[*schedulingv1.PriorityClass]():   kept[schedulingv1.PriorityClass]("scheduling.k8s.io", "priorityclasses"),
	reflect.TypeFor[*storagev1.StorageClass]():       kept[storagev1.StorageClass]("storage.k8s.io", "storageclasses"),
	reflect.TypeFor[*storagev1.CSIDriver]():          kept[storagev1.CSIDriver]("storage.k8s.io", "csidrivers"),
	reflect.TypeFor[*networkingv1.IngressClass]():    kept[networkingv1.IngressClass]("networking.k8s.io", "ingressclasses"),
	reflect.TypeFor[*nodev1.RuntimeClass]():          kept[nodev1.RuntimeClass]("node.k8s.io", "runtimeclasses"),
	reflect.TypeFor[*corev1.Pod]():                   passing[corev1.Pod]("", "pods"),
	reflect.TypeFor[*corev1.Node]():                  passing[corev1.Node]("", "nodes"),
	reflect.TypeFor[*corev1.PersistentVolume]():      passing[corev1.PersistentVolume]("", "persistentvolumes"),
	reflect.TypeFor[*corev1.PersistentVolumeClaim](): passing[corev1.PersistentVolumeClaim]("", "persistentvolumeclaims"),
}

// kept is for resources with few objects, or objects that are read often: they stay decoded.
func kept[T any](group, resource string) func(*sqlstore.Store) cache.Indexer {
	return func(store *sqlstore.Store) cache.Indexer {
		return lister.New[T](store, object.Prefix(group, resource))
	}
}

// passing is for resources with many objects that are rarely read: an object is decoded at each read, so that it is not
// in memory twice.
func passing[T any](group, resource string) func(*sqlstore.Store) cache.Indexer {
	return func(store *sqlstore.Store) cache.Indexer {
		return lister.Of(store, object.Prefix(group, resource), func(e *sqlstore.Entry) (any, error) { return lister.DecodeAnew[T](e) })
	}
}
