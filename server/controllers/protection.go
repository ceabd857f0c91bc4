package controllers

import (
	"bytes"
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/informers/core"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/volume/common"
	"k8s.io/kubernetes/pkg/controller/volume/pvcprotection"
	"k8s.io/kubernetes/pkg/controller/volume/pvprotection"
	"k8s.io/kubernetes/pkg/controller/volume/vacprotection"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// Admission adds a finalizer to claims, volumes and their classes. Upstream's controllers, which run here,
// remove it when the object is deleted and nothing uses it. Without them, a deleted object with a claim would
// never disappear.

// runVolumeProtection protects PersistentVolumes, which claims use.
func (m *Manager) runVolumeProtection(ctx context.Context) error {
	return m.onInformers(ctx, func(ctx context.Context, client kubernetes.Interface, s *informerSet) error {
		c, err := pvprotection.NewPVProtectionController(klog.FromContext(ctx), core.New(s, "", nil).V1().PersistentVolumes(), client)
		if err != nil {
			return err
		}
		s.Start(nil)
		c.Run(ctx, 1)
		return nil
	})
}

var volumeClassesPrefix = object.Prefix(storagev1.GroupName, "volumeattributesclasses")

// runVolumeClassProtection protects VolumeAttributesClasses, which claims and volumes use. It starts with the
// first class, because most clusters have none.
func (m *Manager) runVolumeClassProtection(ctx context.Context) error {
	if err := awaitFirst(ctx, m.config.Store, volumeClassesPrefix); err != nil || ctx.Err() != nil {
		return err
	}
	return m.onInformers(ctx, func(ctx context.Context, client kubernetes.Interface, s *informerSet) error {
		v1 := core.New(s, "", nil).V1()
		c, err := vacprotection.NewVACProtectionController(klog.FromContext(ctx), client, v1.PersistentVolumeClaims(), v1.PersistentVolumes(),
			storage.New(s, "", nil).V1().VolumeAttributesClasses())
		if err != nil {
			return err
		}
		s.Start(nil)
		c.Run(ctx, 1)
		return nil
	})
}

// runClaimProtection protects PersistentVolumeClaims, which pods use. It receives only those changes of pods
// that may change whether a claim is in use: processing every change would slow down every write of a pod.
func (m *Manager) runClaimProtection(ctx context.Context) error {
	return m.onInformers(ctx, func(ctx context.Context, client kubernetes.Interface, s *informerSet) error {
		s.filter(&corev1.Pod{}, func(ev *sqlstore.Event) bool { return mayFreeClaim(s.store, ev) })
		v1 := core.New(s, "", nil).V1()
		c, err := pvcprotection.NewPVCProtectionController(klog.FromContext(ctx), v1.PersistentVolumeClaims(), claimants{v1.Pods(), s.InformerFor(&corev1.Pod{}, nil).(*informer)}, client)
		if err != nil {
			return err
		}
		s.Start(nil)
		c.Run(ctx, 1)
		return nil
	})
}

// mayFreeClaim reports whether a change of a pod may change whether a claim is in use. While a deleted claim
// waits in the pod's namespace, every change may.
func mayFreeClaim(store *sqlstore.Store, ev *sqlstore.Event) bool {
	if !namesClaims(ev.Entry.Value) {
		return false
	}
	return ev.Type == sqlstore.Delete || ev.Prev == nil || isEnding(ev.Entry.Value) || hasStopped(ev.Entry.Value) != hasStopped(ev.Prev.Value) ||
		claimsEnd(store, ev.Entry.Key)
}

// namesClaims reports whether a pod may use claims, by its JSON.
func namesClaims(pod []byte) bool {
	return bytes.Contains(pod, []byte(`"persistentVolumeClaim":{`)) || bytes.Contains(pod, []byte(`"ephemeral":{`))
}

func isEnding(object []byte) bool { return bytes.Contains(object, []byte(`"deletionTimestamp":"`)) }

func hasStopped(pod []byte) bool {
	return bytes.Contains(pod, []byte(`"phase":"Succeeded"`)) || bytes.Contains(pod, []byte(`"phase":"Failed"`))
}

// claimsEnd reports whether a deleted claim in the pod's namespace waits for its finalizer.
func claimsEnd(store *sqlstore.Store, pod string) (found bool) {
	claims := object.Prefix("", "persistentvolumeclaims")
	namespace, _, _ := strings.Cut(strings.TrimPrefix(pod, object.Prefix("", "pods")), "/")
	from, to := changelog.RangeOf(claims + namespace + "/")
	// The view is in memory, so there is no error.
	_ = store.Current(claims).Scan(context.Background(), from, to, func(e *sqlstore.Entry) bool {
		found = ends(e)
		return !found
	})
	return found
}

// endsKey is the key under which the entry of a claim caches whether the claim is being deleted.
type endsKey struct{}

func ends(claim *sqlstore.Entry) bool {
	return claim.Memo(endsKey{}, func() any { return isEnding(claim.Value) }).(bool)
}

// claimants, claimantsInformer and byClaim are an informer of pods with an index by the claims that they use.
type claimants struct {
	coreinformers.PodInformer
	pods *informer
}

func (c claimants) Informer() cache.SharedIndexInformer { return claimantsInformer{c.pods} }

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

// ByIndex returns the pods that use a claim. Decoding all pods of the namespace for each of its claims would
// decode n times n pods.
func (b byClaim) ByIndex(_, claim string) (pods []any, err error) {
	namespace, _, _ := strings.Cut(claim, "/")
	from, to := changelog.RangeOf(b.pods.prefix + namespace + "/")
	// The view is in memory, so there is no error.
	_ = b.pods.set.store.Current(b.pods.prefix).Scan(context.Background(), from, to, func(e *sqlstore.Entry) bool {
		if slices.Contains(b.claimsOf(e), claim) {
			if pod, err := b.pods.decode(e); err == nil {
				pods = append(pods, pod)
			}
		}
		return true
	})
	return pods, nil
}

// claimsKey is the key under which the entry of a pod caches the claims that the pod uses.
type claimsKey struct{}

// claimsOf returns the claims that a pod uses, as NAMESPACE/NAME.
func (b byClaim) claimsOf(e *sqlstore.Entry) []string {
	return e.Memo(claimsKey{}, func() any {
		if !namesClaims(e.Value) {
			return []string(nil)
		}
		pod, err := b.pods.decode(e)
		if err != nil {
			return []string(nil)
		}
		claims, _ := common.PodPVCIndexFunc()(pod) // this function returns no error
		return claims
	}).([]string)
}
