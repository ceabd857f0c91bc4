package controllers

import (
	"bytes"
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers/core"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/volume/common"
	"k8s.io/kubernetes/pkg/controller/volume/pvcprotection"
	"k8s.io/kubernetes/pkg/controller/volume/pvprotection"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// Admission gives claims and volumes a finalizer that somebody has to take away when they
// are deleted and nothing uses them: upstream's controllers. Without them nothing that has
// a claim would ever end.

// runVolumeProtection is about PersistentVolumes, which their claims use.
func (m *Manager) runVolumeProtection(ctx context.Context) error {
	return m.onInformers(ctx, func(ctx context.Context, client kubernetes.Interface, s *informerSet) error {
		c := pvprotection.NewPVProtectionController(klog.FromContext(ctx), core.New(s, "", nil).V1().PersistentVolumes(), client)
		s.Start(nil)
		c.Run(ctx, 1)
		return nil
	})
}

// runClaimProtection is about PersistentVolumeClaims, which pods use. It hears of pods only
// where a claim is on its way out: to look at each change of all pods would cost every
// write of one.
func (m *Manager) runClaimProtection(ctx context.Context) error {
	return m.onInformers(ctx, func(ctx context.Context, client kubernetes.Interface, s *informerSet) error {
		s.only(&corev1.Pod{}, func(key string) bool { return claimsEnd(s.store, key) })
		v1 := core.New(s, "", nil).V1()
		c, err := pvcprotection.NewPVCProtectionController(klog.FromContext(ctx), v1.PersistentVolumeClaims(), claimants{v1.Pods()}, client)
		if err != nil {
			return err
		}
		s.Start(nil)
		c.Run(ctx, 1)
		return nil
	})
}

// claimsEnd tells whether a claim in the namespace of a pod waits for its end.
func claimsEnd(store *sqlstore.Store, pod string) (found bool) {
	claims := object.Prefix("", "persistentvolumeclaims")
	namespace, _, _ := strings.Cut(strings.TrimPrefix(pod, object.Prefix("", "pods")), "/")
	from, to := sqlstore.RangeOf(claims + namespace + "/")
	// In memory: there is no error.
	_ = store.Current(claims).Scan(context.Background(), from, to, func(e *sqlstore.Entry) bool {
		found = ends(e)
		return !found
	})
	return found
}

// endsKey is where the entry of a claim keeps whether it waits for its end.
type endsKey struct{}

func ends(claim *sqlstore.Entry) bool {
	return claim.Memo(endsKey{}, func() any { return bytes.Contains(claim.Value, []byte(`"deletionTimestamp":"`)) }).(bool)
}

// claimants, claimantsInformer and byClaim are the informer of pods with the index of the
// claims that they use.
type claimants struct{ coreinformers.PodInformer }

func (c claimants) Informer() cache.SharedIndexInformer {
	return claimantsInformer{c.PodInformer.Informer().(*informer)}
}

type claimantsInformer struct{ *informer }

func (i claimantsInformer) GetIndexer() cache.Indexer {
	return byClaim{i.informer.GetIndexer(), i.informer}
}

type byClaim struct {
	cache.Indexer
	pods *informer
}

func (byClaim) GetIndexers() cache.Indexers {
	return cache.Indexers{common.PodPVCIndex: common.PodPVCIndexFunc()}
}

// ByIndex returns the pods that may use a claim, of which the controller looks at each. To
// make objects of all in the namespace for each of its claims would be to read n times n.
func (b byClaim) ByIndex(_, claim string) (pods []any, err error) {
	namespace, name, _ := strings.Cut(claim, "/")
	from, to := sqlstore.RangeOf(b.pods.prefix + namespace + "/")
	named := []byte(`"claimName":"` + name + `"`)
	// In memory: there is no error.
	_ = b.pods.set.store.Current(b.pods.prefix).Scan(context.Background(), from, to, func(e *sqlstore.Entry) bool {
		own := e.Key[len(from):] + "-" // begins the names of claims that the pod brings
		if strings.HasPrefix(name, own) || bytes.Contains(e.Value, named) {
			if pod, err := b.pods.decode(e); err == nil {
				pods = append(pods, pod)
			}
		}
		return true
	})
	return pods, nil
}
