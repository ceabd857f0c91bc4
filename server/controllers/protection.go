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

// Admission gives claims, volumes and their classes a finalizer that somebody has to take away when they
// are deleted and nothing uses them: upstream's controllers. Without them nothing that has
// a claim would ever end.

// runVolumeProtection is about PersistentVolumes, which their claims use.
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

// runVolumeClassProtection is about VolumeAttributesClasses, which claims and volumes use. It begins when there is
// a class: most clusters have none.
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

// runClaimProtection is about PersistentVolumeClaims, which pods use. It hears only of changes of pods that may
// change whether a claim is in use: to look at each change of all pods would cost every write of one.
func (m *Manager) runClaimProtection(ctx context.Context) error {
	return m.onInformers(ctx, func(ctx context.Context, client kubernetes.Interface, s *informerSet) error {
		s.only(&corev1.Pod{}, func(ev *sqlstore.Event) bool { return mayFreeClaim(s.store, ev) })
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

// mayFreeClaim tells whether a change of a pod may change whether a claim is in use. A claim that waits for its end
// is looked at after each change.
func mayFreeClaim(store *sqlstore.Store, ev *sqlstore.Event) bool {
	if !namesClaims(ev.Entry.Value) {
		return false
	}
	return ev.Type == sqlstore.Delete || ev.Prev == nil || isEnding(ev.Entry.Value) || hasStopped(ev.Entry.Value) != hasStopped(ev.Prev.Value) ||
		claimsEnd(store, ev.Entry.Key)
}

// namesClaims tells whether a pod may use claims, by its JSON.
func namesClaims(pod []byte) bool {
	return bytes.Contains(pod, []byte(`"persistentVolumeClaim":{`)) || bytes.Contains(pod, []byte(`"ephemeral":{`))
}

func isEnding(object []byte) bool { return bytes.Contains(object, []byte(`"deletionTimestamp":"`)) }

func hasStopped(pod []byte) bool {
	return bytes.Contains(pod, []byte(`"phase":"Succeeded"`)) || bytes.Contains(pod, []byte(`"phase":"Failed"`))
}

// claimsEnd tells whether a claim in the namespace of a pod waits for its end.
func claimsEnd(store *sqlstore.Store, pod string) (found bool) {
	claims := object.Prefix("", "persistentvolumeclaims")
	namespace, _, _ := strings.Cut(strings.TrimPrefix(pod, object.Prefix("", "pods")), "/")
	from, to := changelog.RangeOf(claims + namespace + "/")
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
	return claim.Memo(endsKey{}, func() any { return isEnding(claim.Value) }).(bool)
}

// claimants, claimantsInformer and byClaim are the informer of pods with the index of the
// claims that they use.
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

// ByIndex returns the pods that use a claim. To make objects of all in the namespace for each of its claims would
// be to read n times n.
func (b byClaim) ByIndex(_, claim string) (pods []any, err error) {
	namespace, _, _ := strings.Cut(claim, "/")
	from, to := changelog.RangeOf(b.pods.prefix + namespace + "/")
	// In memory: there is no error.
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

// claimsKey is where the entry of a pod keeps the claims that the pod uses.
type claimsKey struct{}

// claimsOf are the claims that a pod uses, as NAMESPACE/NAME.
func (b byClaim) claimsOf(e *sqlstore.Entry) []string {
	return e.Memo(claimsKey{}, func() any {
		if !namesClaims(e.Value) {
			return []string(nil)
		}
		pod, err := b.pods.decode(e)
		if err != nil {
			return []string(nil)
		}
		claims, _ := common.PodPVCIndexFunc()(pod) // which returns no error
		return claims
	}).([]string)
}
