package admission

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	quotainstall "k8s.io/kubernetes/pkg/quota/v1/install"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// Quota refuses writes that exceed a ResourceQuota of the namespace, and adds the others to
// the quota's status before the object is stored. It is upstream's plugin
// (k8s.io/apiserver/pkg/admission/plugin/resourcequota) on the store. In a namespace without
// a quota it costs a look into the store. The plugin and its workers start with the first
// write to a namespace that has a quota.
// https://kubernetes.io/docs/concepts/policy/resource-quotas/
type Quota struct {
	*apiadmission.Handler
	store    *sqlstore.Store
	quotas   corelisters.ResourceQuotaLister
	plugin   func() (*upstreamQuota, error) // made once
	reserved *Reservations                  // nil: nobody asks for them
}

var _ apiadmission.ValidationInterface = &Quota{}

// NewQuota returns the plugin for the quotas in o.Store, whose status it updates through
// o.Client. Its workers end when o.Stop is closed. It tells o.Reservations of what it has counted.
func NewQuota(o *Options) *Quota {
	quotas := lister.New[corev1.ResourceQuota](o.Store, quotaRules.prefix)
	return &Quota{
		Handler: apiadmission.NewHandler(apiadmission.Create, apiadmission.Update),
		store:   o.Store,
		quotas:  corelisters.NewResourceQuotaLister(quotas),
		plugin:  sync.OnceValues(func() (*upstreamQuota, error) { return newQuota(o) }),

		reserved: o.Reservations,
	}
}

func newQuota(o *Options) (*upstreamQuota, error) {
	client, err := kubernetes.NewForConfig(o.Client)
	if err != nil {
		return nil, err
	}
	plugin, err := resourcequota.NewResourceQuota(nil, quotaWorkers)
	if err != nil {
		return nil, err
	}
	q := &upstreamQuota{QuotaAdmission: plugin, classes: newView[resourcev1.DeviceClass](o.Store, classPrefix)}
	f := q.factory(o.Store)
	rules, err := quotainstall.NewQuotaConfigurationForAdmission(f, served{kinds: o.Kinds})
	if err != nil {
		return nil, err
	}
	plugin.SetExternalKubeClientSet(client)
	plugin.SetExternalKubeInformerFactory(f)
	plugin.SetDrainedNotification(o.Stop)
	plugin.SetQuotaConfiguration(rules)
	return q, plugin.ValidateInitialization()
}

var quotaRules = &rules{object.Prefix("", "resourcequotas"), true}

// counts tells whether a quota may be about a write: upstream's count objects when they are created, and a few
// resources also when they are changed.
func counts(a apiadmission.Attributes) bool {
	switch resource := a.GetResource().GroupResource(); {
	case isIgnored(resource):
		return false
	case a.GetOperation() == apiadmission.Create:
		return true
	case resource.Group == "":
		return resource.Resource == "pods" || resource.Resource == "services" || resource.Resource == "persistentvolumeclaims"
	case resource.Group == resourcev1.GroupName:
		return resource.Resource == "resourceclaims"
	}
	return false
}

func isIgnored(resource schema.GroupResource) bool {
	_, ignored := quotainstall.DefaultIgnoredResources()[resource]
	return ignored
}

// quotaWorkers is upstream's number.
const quotaWorkers = 5

// Validate is asked last, so that no other plugin refuses a write that the quota has counted.
func (q *Quota) Validate(ctx context.Context, a apiadmission.Attributes, o apiadmission.ObjectInterfaces) error {
	if a.GetNamespace() == "" {
		return nil
	}
	if counts(a) {
		if err := quotaRules.readable(ctx, q.store, a); err != nil {
			return err
		}
	}
	if all, err := q.quotas.ResourceQuotas(a.GetNamespace()).List(labels.Everything()); err != nil || len(all) == 0 {
		return err
	}
	upstream, err := q.plugin()
	if err != nil {
		return err
	}
	if q.reserved != nil && !a.IsDryRun() {
		q.reserved.Begin(ctx, a.GetNamespace())
	}
	return upstream.Validate(ctx, today(a, o), o)
}
