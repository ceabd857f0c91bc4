package control

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
	const claims = "/registry/core/persistentvolumeclaims/"
	namespace, _, _ := strings.Cut(strings.TrimPrefix(pod, "/registry/core/pods/"), "/")
	from, to := sqlstore.RangeOf(claims + namespace + "/")
	// In memory: there is no error.
	_ = store.Current(claims).Scan(context.Background(), from, to, func(e *sqlstore.Entry) bool {
		found = bytes.Contains(e.JSON, []byte(`"deletionTimestamp":"`))
		return !found
	})
	return found
}

// claimants, claimantsInformer and byClaim are the informer of pods with the index of the
// claims that they use.
type claimants struct{ coreinformers.PodInformer }

func (c claimants) Informer() cache.SharedIndexInformer {
	return claimantsInformer{c.PodInformer.Informer()}
}

type claimantsInformer struct{ cache.SharedIndexInformer }

func (i claimantsInformer) GetIndexer() cache.Indexer {
	return byClaim{i.SharedIndexInformer.GetIndexer()}
}

type byClaim struct{ cache.Indexer }

func (byClaim) GetIndexers() cache.Indexers {
	return cache.Indexers{common.PodPVCIndex: common.PodPVCIndexFunc()}
}

// ByIndex returns all pods of the namespace, of which the controller looks at each.
func (b byClaim) ByIndex(_, claim string) ([]any, error) {
	namespace, _, _ := strings.Cut(claim, "/")
	return b.Indexer.ByIndex(cache.NamespaceIndex, namespace)
}
