package admit

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
	"k8s.io/client-go/informers/scheduling"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/tools/cache"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
)

// factory stands for the factory of informers that plugins take their listers from. What
// these list is read from the store, so that there is no copy of the objects, no goroutine
// and nothing to wait for. The embedded interface is nil and stands for the groups that no
// plugin asks for.
type factory struct {
	informers.SharedInformerFactory
	store *sqlstore.Store
	own   map[reflect.Type]cache.SharedIndexInformer // in place of those of listed
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
func (f *factory) Scheduling() scheduling.Interface { return scheduling.New(f, "", nil) }
func (f *factory) Storage() storage.Interface       { return storage.New(f, "", nil) }

// informer stands for the informer of one type. The embedded interface is nil and stands
// for the methods that plugins do not use.
type informer struct {
	cache.SharedIndexInformer
	indexer cache.Indexer
}

func (i *informer) GetIndexer() cache.Indexer { return i.indexer }
func (i *informer) HasSynced() bool           { return true }

// listed are the types that plugins list.
var listed = map[reflect.Type]func(*sqlstore.Store) cache.Indexer{
	reflect.TypeFor[*corev1.Namespace]():             kept[corev1.Namespace]("core/namespaces"),
	reflect.TypeFor[*corev1.LimitRange]():            kept[corev1.LimitRange]("core/limitranges"),
	reflect.TypeFor[*corev1.ServiceAccount]():        kept[corev1.ServiceAccount]("core/serviceaccounts"),
	reflect.TypeFor[*corev1.ResourceQuota]():         kept[corev1.ResourceQuota]("core/resourcequotas"),
	reflect.TypeFor[*schedulingv1.PriorityClass]():   kept[schedulingv1.PriorityClass]("scheduling.k8s.io/priorityclasses"),
	reflect.TypeFor[*storagev1.StorageClass]():       kept[storagev1.StorageClass]("storage.k8s.io/storageclasses"),
	reflect.TypeFor[*storagev1.CSIDriver]():          kept[storagev1.CSIDriver]("storage.k8s.io/csidrivers"),
	reflect.TypeFor[*networkingv1.IngressClass]():    kept[networkingv1.IngressClass]("networking.k8s.io/ingressclasses"),
	reflect.TypeFor[*nodev1.RuntimeClass]():          kept[nodev1.RuntimeClass]("node.k8s.io/runtimeclasses"),
	reflect.TypeFor[*corev1.Pod]():                   passing[corev1.Pod]("core/pods"),
	reflect.TypeFor[*corev1.Node]():                  passing[corev1.Node]("core/nodes"),
	reflect.TypeFor[*corev1.PersistentVolume]():      passing[corev1.PersistentVolume]("core/persistentvolumes"),
	reflect.TypeFor[*corev1.PersistentVolumeClaim](): passing[corev1.PersistentVolumeClaim]("core/persistentvolumeclaims"),
}

// kept lists objects that are few or asked for often: they stay decoded.
func kept[T any](resource string) func(*sqlstore.Store) cache.Indexer {
	return func(store *sqlstore.Store) cache.Indexer { return lister.New[T](store, "/registry/"+resource+"/") }
}

// passing lists objects of which there may be many and which are rarely asked for: they
// are decoded each time, and do not stay in memory twice.
func passing[T any](resource string) func(*sqlstore.Store) cache.Indexer {
	return func(store *sqlstore.Store) cache.Indexer {
		return lister.Of(store, "/registry/"+resource+"/", func(e *sqlstore.Entry) (any, error) { return lister.DecodeAnew[T](e) })
	}
}
