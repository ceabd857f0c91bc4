package admit

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	clientrest "k8s.io/client-go/rest"
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
		plugin:  sync.OnceValues(func() (*resourcequota.QuotaAdmission, error) { return newQuota(store, client, stop) }),
	}
}

func newQuota(store *sqlstore.Store, config *clientrest.Config, stop <-chan struct{}) (*resourcequota.QuotaAdmission, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	plugin, err := resourcequota.NewResourceQuota(nil, quotaWorkers)
	if err != nil {
		return nil, err
	}
	plugin.SetExternalKubeClientSet(client)
	plugin.SetExternalKubeInformerFactory(&factory{store: store})
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
	return upstream.Validate(ctx, today(a, o), o)
}
