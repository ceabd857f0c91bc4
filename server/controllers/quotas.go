package controllers

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/informers"
	informerscore "k8s.io/client-go/informers/core"
	informersresource "k8s.io/client-go/informers/resource"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/controller/resourcequota"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	quotainstall "k8s.io/kubernetes/pkg/quota/v1/install"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

var quotasPrefix = object.Prefix("", "resourcequotas")

const (
	// These times and numbers are kube-controller-manager's.
	quotaWorkers  = 5
	quotaResync   = 5 * time.Minute
	quotaDiscover = 30 * time.Second
)

// runQuotas runs upstream's controller that counts the usage of ResourceQuotas. It follows every resource, so
// it starts with the first quota: most clusters have none.
func (m *Manager) runQuotas(ctx context.Context) error {
	if err := awaitFirst(ctx, m.config.Store, quotasPrefix); err != nil || ctx.Err() != nil {
		return err
	}
	return m.onInformers(ctx, m.countQuotas)
}

func (m *Manager) countQuotas(ctx context.Context, client kubernetes.Interface, s *informerSet) error {
	resources := func() ([]*metav1.APIResourceList, error) { return preferred(m.config.API.Kinds.Set(), namespaced), nil }
	counts, err := core.NewEvaluators(generic.ListerFuncForResourceFunc(s.ForResource), quotaInformers{s: s}, s.counted)
	if err != nil {
		return err
	}
	started := make(chan struct{})
	close(started)
	c, err := resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient:               client.CoreV1(),
		ResourceQuotaInformer:     m.settledQuotas(ctx, informerscore.New(s, "", nil).V1().ResourceQuotas()),
		ResyncPeriod:              func() time.Duration { return quotaResync },
		ReplenishmentResyncPeriod: func() time.Duration { return 0 },
		Registry:                  generic.NewRegistry(counts),
		DiscoveryFunc:             resources,
		IgnoredResourcesFunc:      quotainstall.DefaultIgnoredResources,
		InformersStarted:          started,
		InformerFactory:           s,
		UpdateFilter:              quotainstall.DefaultUpdateFilter(),
	})
	if err != nil {
		return err
	}
	s.Start(nil)
	var running sync.WaitGroup
	running.Go(func() { c.Sync(ctx, resources, quotaDiscover) })
	c.Run(ctx, quotaWorkers)
	running.Wait()
	return nil
}

// quotaInformers are the informers that count devices: those of pods, claims and classes. The embedded
// interface is nil.
type quotaInformers struct {
	informers.SharedInformerFactory
	s *informerSet
}

func (i quotaInformers) Core() informerscore.Interface { return informerscore.New(i.s, "", nil) }

func (i quotaInformers) Resource() informersresource.Interface {
	return informersresource.New(i.s, "", nil)
}

// counted reports whether upstream's rules can count a resource. The rules for device claims need more than
// the claims.
func (s *informerSet) counted(gvr schema.GroupVersionResource) bool {
	served := func(gvr schema.GroupVersionResource) bool {
		return s.kinds.Lookup(gvr.Group, gvr.Version, gvr.Resource) != nil
	}
	if gvr == resourcev1.SchemeGroupVersion.WithResource("resourceclaims") {
		return served(gvr) && served(resourcev1.SchemeGroupVersion.WithResource("deviceclasses")) && served(corev1.SchemeGroupVersion.WithResource("pods"))
	}
	return served(gvr)
}

// awaitFirst waits until a resource has an object, or until ctx ends.
func awaitFirst(ctx context.Context, store *sqlstore.Store, resource string) error {
	found, stop := context.WithCancel(ctx)
	defer stop()
	return lister.Follow(found, store, resource, func() {}, func(ev *sqlstore.Event) {
		if ev.Type == sqlstore.Put {
			stop()
		}
	})
}
