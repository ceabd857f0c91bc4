package admit

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	quotainstall "k8s.io/kubernetes/pkg/quota/v1/install"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
)

// Quota refuses what a ResourceQuota of the namespace does not allow, and takes what it
// allows from the quota's status before the object is stored. It is upstream's plugin
// (k8s.io/apiserver/pkg/admission/plugin/resourcequota) on the store. Namespaces without a
// quota, most of them, cost a look into the store; the plugin and its workers begin with
// the first write to another.
// https://kubernetes.io/docs/concepts/policy/resource-quotas/
type Quota struct {
	*admission.Handler
	quotas corelisters.ResourceQuotaLister
	plugin func() (*resourcequota.QuotaAdmission, error) // upstream's plugin, made once
}

var _ admission.ValidationInterface = &Quota{}

// NewQuota returns the plugin for the quotas in store, whose status it updates through
// client. Its workers end when stop is closed.
func NewQuota(store *sqlstore.Store, client *clientrest.Config, stop <-chan struct{}) *Quota {
	quotas := lister.New[corev1.ResourceQuota](store, "/registry/core/resourcequotas/")
	return &Quota{
		Handler: admission.NewHandler(admission.Create, admission.Update),
		quotas:  corelisters.NewResourceQuotaLister(quotas),
		plugin:  sync.OnceValues(func() (*resourcequota.QuotaAdmission, error) { return newQuota(quotas, client, stop) }),
	}
}

func newQuota(quotas cache.Indexer, config *clientrest.Config, stop <-chan struct{}) (*resourcequota.QuotaAdmission, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	plugin, err := resourcequota.NewResourceQuota(nil, quotaWorkers)
	if err != nil {
		return nil, err
	}
	plugin.SetExternalKubeClientSet(client)
	plugin.SetExternalKubeInformerFactory(&quotaInformers{indexer: quotas})
	plugin.SetDrainedNotification(stop)
	plugin.SetQuotaConfiguration(quotainstall.NewQuotaConfigurationForAdmission())
	return plugin, plugin.ValidateInitialization()
}

// quotaWorkers is upstream's number.
const quotaWorkers = 5

// Validate is asked last: what it takes from a quota should not be refused by others then.
func (q *Quota) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if a.GetNamespace() == "" {
		return nil
	}
	if all, err := q.quotas.ResourceQuotas(a.GetNamespace()).List(labels.Everything()); err != nil || len(all) == 0 {
		return err
	}
	upstream, err := q.plugin()
	if err != nil {
		return err
	}
	return upstream.Validate(ctx, a, o)
}

// quotaInformers stands for the factory of informers, of which the plugin takes one. The
// embedded interfaces are nil and stand for what it does not use.
type quotaInformers struct {
	informers.SharedInformerFactory
	indexer cache.Indexer
}

func (f *quotaInformers) Core() core.Interface { return core.New(f, "", nil) }

func (f *quotaInformers) InformerFor(runtime.Object, internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	return &quotaInformer{indexer: f.indexer}
}

type quotaInformer struct {
	cache.SharedIndexInformer
	indexer cache.Indexer
}

func (i *quotaInformer) GetIndexer() cache.Indexer { return i.indexer }
func (i *quotaInformer) HasSynced() bool           { return true }
