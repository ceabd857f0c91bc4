package controllers

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// settled passes a quota to upstream's controller only when the objects that the quota has counted can be
// listed. Admission counts an object before it is stored. In between, the controller would count one object
// less, and after it has written that number, the namespace could get more objects than the quota allows. An
// object that is counted later changes the quota, so that the controller's update conflicts and it counts
// again.
type settled struct {
	coreinformers.ResourceQuotaInformer
	ctx context.Context
	m   *Manager

	mu      sync.Mutex
	changed map[types.UID]time.Time // when each quota changed last; only if m is shared
}

func (m *Manager) settledQuotas(ctx context.Context, quotas coreinformers.ResourceQuotaInformer) coreinformers.ResourceQuotaInformer {
	s := &settled{ResourceQuotaInformer: quotas, ctx: ctx, m: m, changed: map[types.UID]time.Time{}}
	if m.shared() {
		// The only error is that the informers have ended.
		_, _ = quotas.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			UpdateFunc: func(_, quota any) { s.note(quota.(*corev1.ResourceQuota)) },
			DeleteFunc: func(quota any) { s.forget(quota.(*corev1.ResourceQuota)) },
		})
	}
	return s
}

// Lister is the lister from which the controller reads a quota before it counts.
func (s *settled) Lister() corelisters.ResourceQuotaLister {
	return settledLister{s.ResourceQuotaInformer.Lister(), s}
}

type settledLister struct {
	corelisters.ResourceQuotaLister
	s *settled
}

func (l settledLister) ResourceQuotas(namespace string) corelisters.ResourceQuotaNamespaceLister {
	return settledNamespace{l.ResourceQuotaLister.ResourceQuotas(namespace), l.s, namespace}
}

type settledNamespace struct {
	corelisters.ResourceQuotaNamespaceLister
	s         *settled
	namespace string
}

// Get returns a quota. A quota without a status is returned at once, because it has counted nothing.
func (n settledNamespace) Get(name string) (*corev1.ResourceQuota, error) {
	for tries := othersTries; ; tries-- {
		quota, err := n.ResourceQuotaNamespaceLister.Get(name)
		if err != nil || len(quota.Status.Used) == 0 {
			return quota, err
		}
		pause := n.s.pause(quota)
		if pause <= 0 || tries == 0 {
			return quota, n.s.m.config.Reservations.Settle(n.s.ctx, n.namespace)
		}
		if err := sleep.For(n.s.ctx, pause); err != nil {
			return nil, err
		}
	}
}

// othersStore is the longest time that another server may need to store an object after it has counted it,
// because the reservations of this server do not contain the writes of others. Most take milliseconds.
const othersStore = time.Second

// othersTries bounds the retries for a quota that changes all the time. If it changes again, the controller's
// update conflicts in most cases.
const othersTries = 5

func (s *settled) note(quota *corev1.ResourceQuota) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed[quota.UID] = time.Now()
}

func (s *settled) forget(quota *corev1.ResourceQuota) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.changed, quota.UID)
}

// pause returns how long to wait until other servers have stored the objects that the quota has counted.
func (s *settled) pause(quota *corev1.ResourceQuota) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return othersStore - time.Since(s.changed[quota.UID])
}
