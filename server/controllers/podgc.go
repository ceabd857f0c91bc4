package controllers

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	podv1 "k8s.io/kubernetes/pkg/api/v1/pod"
	utilpod "k8s.io/kubernetes/pkg/util/pod"
	"k8s.io/kubernetes/pkg/util/taints"
)

// These times and numbers are those of upstream's pod garbage collector.
const (
	podGCEvery         = 20 * time.Second
	podGCQuarantine    = 40 * time.Second
	mostTerminatedPods = 12500 // kube-controller-manager's --terminated-pod-gc-threshold
)

// podGC deletes pods that nothing else deletes: pods of nodes that are gone or out of service, pods that were
// deleted before they had a node, and the oldest finished pods if there are too many. It follows the rules of
// upstream's pod garbage collector, whose package depends on half of the kubelet. It is off by default,
// because in a cluster without nodes it would delete pods that somebody created for a test.
type podGC struct {
	client     kubernetes.Interface
	pods       corelisters.PodLister
	nodes      corelisters.NodeLister
	logger     *slog.Logger
	quarantine time.Duration
	threshold  int

	missing map[string]time.Time // missing nodes of pods, and since when they are missing
	failed  int                  // pods that this pass could not remove
}

func (m *Manager) runPodGC(ctx context.Context) error {
	return m.onInformers(ctx, func(ctx context.Context, client kubernetes.Interface, s *informerSet) error {
		v1 := core.New(s, "", nil).V1()
		g := &podGC{
			client: client, pods: v1.Pods().Lister(), nodes: v1.Nodes().Lister(), logger: m.config.Logger,
			quarantine: podGCQuarantine, threshold: mostTerminatedPods, missing: map[string]time.Time{},
		}
		tick := time.NewTicker(podGCEvery)
		defer tick.Stop()
		for failed := false; ; {
			g.failed = 0
			err := g.collect(ctx)
			if now := err != nil || g.failed > 0; ctx.Err() == nil {
				if now && !failed {
					m.config.Logger.Warn("pods could not be collected; it is tried again", "pods", g.failed, "err", err)
				}
				failed = now
			}
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	})
}

// collect checks all pods once.
func (g *podGC) collect(ctx context.Context) error {
	pods, err := g.pods.List(labels.Everything())
	if err != nil {
		return err
	}
	gone, err := g.goneNodes(ctx, pods)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		switch {
		case gone[pod.Spec.NodeName]:
			g.remove(ctx, pod, &corev1.PodCondition{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
				Reason: "DeletionByPodGC", Message: "PodGC: node no longer exists",
				ObservedGeneration: podv1.CalculatePodConditionObservedGeneration(&pod.Status, pod.Generation, corev1.DisruptionTarget),
			})
		case pod.DeletionTimestamp != nil && (pod.Spec.NodeName == "" || g.outOfService(pod.Spec.NodeName)):
			g.remove(ctx, pod, nil)
		}
	}
	g.removeEnded(ctx, pods)
	return nil
}

// goneNodes returns the nodes of pods that have been missing for the quarantine time. It also asks the API,
// because another replica may have created a node.
func (g *podGC) goneNodes(ctx context.Context, pods []*corev1.Pod) (map[string]bool, error) {
	gone, missing := map[string]bool{}, map[string]time.Time{}
	for _, pod := range pods {
		name := pod.Spec.NodeName
		if _, seen := missing[name]; name == "" || seen {
			continue
		}
		if _, err := g.nodes.Get(name); !apierrors.IsNotFound(err) {
			continue
		}
		since, known := g.missing[name]
		if !known {
			since = time.Now()
		}
		missing[name] = since
		if time.Since(since) < g.quarantine {
			continue
		}
		_, err := g.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		gone[name] = err != nil
	}
	g.missing = missing
	return gone, nil
}

// outOfService reports whether a node is not ready and has the taint out-of-service.
func (g *podGC) outOfService(name string) bool {
	node, err := g.nodes.Get(name)
	return err == nil && !nodeReady(node) && taints.TaintKeyExists(node.Spec.Taints, corev1.TaintNodeOutOfService)
}

func nodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// removeEnded deletes the finished pods beyond the threshold: evicted pods first, then the oldest.
func (g *podGC) removeEnded(ctx context.Context, pods []*corev1.Pod) {
	ended := slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return !hasEnded(pod) })
	over := len(ended) - g.threshold
	if over <= 0 {
		return
	}
	slices.SortFunc(ended, func(a, b *corev1.Pod) int {
		if a, b := evicted(a), evicted(b); a != b {
			return map[bool]int{true: -1, false: 1}[a]
		}
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, pod := range ended[:over] {
		g.remove(ctx, pod, nil)
	}
}

// evicted reports whether a kubelet ended the pod because its node ran out of a resource.
func evicted(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed && pod.Status.Reason == "Evicted"
}

// hasEnded reports whether a pod has finished. An unknown phase counts as finished, as in upstream.
func hasEnded(pod *corev1.Pod) bool {
	switch pod.Status.Phase {
	case corev1.PodPending, corev1.PodRunning, corev1.PodUnknown:
		return false
	}
	return true
}

// remove deletes a pod without a grace period. It first sets an unfinished pod to Failed, because no kubelet
// does that. Errors are counted, and the next pass tries again.
func (g *podGC) remove(ctx context.Context, pod *corev1.Pod, why *corev1.PodCondition) {
	if err := g.fail(ctx, pod, why); err != nil && ctx.Err() == nil {
		g.failed++
		g.logger.Debug("pod could not be collected; it is tried again", "namespace", pod.Namespace, "name", pod.Name, "err", err)
		return
	}
	err := g.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0))
	if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		g.failed++
		g.logger.Debug("pod could not be collected; it is tried again", "namespace", pod.Namespace, "name", pod.Name, "err", err)
	}
}

func (g *podGC) fail(ctx context.Context, pod *corev1.Pod, why *corev1.PodCondition) error {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	status := pod.Status.DeepCopy()
	status.Phase = corev1.PodFailed
	status.ObservedGeneration = podv1.CalculatePodStatusObservedGeneration(pod)
	if why != nil {
		podv1.UpdatePodCondition(status, why)
	}
	_, _, _, err := utilpod.PatchPodStatus(ctx, g.client, pod.Namespace, pod.Name, pod.UID, pod.Status, *status)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
