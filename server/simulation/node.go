package simulation

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/apimachinery/lease"
	"k8s.io/utils/clock"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// The times are kubelet's.
const (
	leaseSeconds = 40
	leaseRenewal = leaseSeconds * time.Second / 4
	reportEvery  = 5 * time.Minute
)

// tryAgain is the pause before a node that could not be registered or reported tries again.
const tryAgain = time.Second

// node is one simulated node.
type node struct {
	*simulation
	name   string
	index  int
	ip     string
	ranged bool // see Config.Ranges
	client kubernetes.Interface

	mu      sync.Mutex
	network []byte             // the first three bytes of its pods' addresses; nil: not known yet
	used    map[byte]types.UID // the pods that have these addresses, by the last byte
}

// open makes the node's client. It is the user that a kubelet is.
func (n *node) open() (err error) {
	n.ip = fmt.Sprintf("198.18.%d.%d", n.index/250, n.index%250+1) // for benchmarks: RFC 2544
	if !n.ranged {
		n.network = []byte{10, byte(244 + n.index/256), byte(n.index % 256)}
	}
	config := clientrest.CopyConfig(n.host.As(&user.DefaultInfo{Name: "system:node:" + n.name, Groups: []string{user.NodesGroup, user.AllAuthenticated}}))
	config.UserAgent = "kubelet/" + kind.Release // manager of what it writes
	config.ContentType = "application/vnd.kubernetes.protobuf"
	n.client, err = kubernetes.NewForConfig(config)
	return err
}

// run keeps the node ready until ctx ends.
func (n *node) run(ctx context.Context) {
	if n.untilWritten(ctx, n.register) != nil {
		return
	}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		renew := lease.NewController(clock.RealClock{}, n.client, n.name, leaseSeconds, nil, leaseRenewal, n.name, corev1.NamespaceNodeLease,
			func(l *coordinationv1.Lease) error { return n.own(ctx, l) })
		renew.Run(ctx)
	})
	running.Go(func() { n.follow(ctx) })
	for sleep.For(ctx, reportEvery) == nil {
		if n.untilWritten(ctx, n.report) != nil {
			return
		}
	}
}

// untilWritten calls write until it succeeds. Its error is that of ctx.
func (n *node) untilWritten(ctx context.Context, write func(context.Context) error) error {
	for {
		err := write(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			n.host.Logger.Debug("a simulated node could not be written; it is tried again", "node", n.name, "err", err)
		}
		if err := sleep.For(ctx, tryAgain); err != nil {
			return err
		}
	}
}

// register creates the Node, unless it is there, and makes it ready.
func (n *node) register(ctx context.Context) error {
	labels := map[string]string{
		corev1.LabelHostname: n.name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: runtime.GOARCH,
	}
	made := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: labels}}
	n.setStatus(&made.Status)
	if _, err := n.client.CoreV1().Nodes().Create(ctx, made, metav1.CreateOptions{}); err == nil || !apierrors.IsAlreadyExists(err) {
		return err
	}
	return n.report(ctx)
}

// report writes that the node is ready.
func (n *node) report(ctx context.Context) error {
	now, err := n.client.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return n.register(ctx) // somebody has deleted it
	} else if err != nil {
		return err
	}
	n.setStatus(&now.Status)
	_, err = n.client.CoreV1().Nodes().UpdateStatus(ctx, now, metav1.UpdateOptions{})
	return err
}

// own makes the Node the owner of its Lease, so that both go together.
func (n *node) own(ctx context.Context, l *coordinationv1.Lease) error {
	if len(l.OwnerReferences) > 0 {
		return nil
	}
	now, err := n.client.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	l.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.name, UID: now.UID}}
	return nil
}

// setStatus sets the status of a node that is ready.
func (n *node) setStatus(s *corev1.NodeStatus) {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("110"),
	}
	s.Capacity, s.Allocatable = room, room
	s.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: n.ip}, {Type: corev1.NodeHostName, Address: n.name}}
	s.NodeInfo = corev1.NodeSystemInfo{
		Architecture: runtime.GOARCH, OperatingSystem: "linux", KubeletVersion: kind.Release, ContainerRuntimeVersion: "simulated://",
		KernelVersion: "simulated", OSImage: "simulated by plinth",
	}
	n.setConditions(s)
}

// setConditions sets a kubelet's conditions.
func (n *node) setConditions(s *corev1.NodeStatus) {
	now := metav1.Now()
	before := map[corev1.NodeConditionType]corev1.NodeCondition{}
	for _, c := range s.Conditions {
		before[c.Type] = c
	}
	set := func(t corev1.NodeConditionType, status corev1.ConditionStatus, reason string) {
		c := corev1.NodeCondition{Type: t, Status: status, Reason: reason, Message: "simulated", LastHeartbeatTime: now, LastTransitionTime: now}
		if old, is := before[t]; is && old.Status == status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		s.Conditions = append(s.Conditions, c)
	}
	s.Conditions = nil
	set(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory")
	set(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure")
	set(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID")
	set(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady")
}

// follow hears of the node's pods until ctx ends.
func (n *node) follow(ctx context.Context) {
	mine := fields.OneTermEqualSelector("spec.nodeName", n.name)
	pods := cache.NewListWatchFromClient(n.client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, mine)
	cache.NewReflectorWithOptions(pods, &corev1.Pod{}, ears{n}, cache.ReflectorOptions{Name: n.name}).RunWithContext(ctx)
}

// ears is where a reflector puts the node's pods. It keeps none of them.
type ears struct{ n *node }

// Add implements cache.ReflectorStore.
func (e ears) Add(object any) error { return e.Update(object) }

// Update implements cache.ReflectorStore.
func (e ears) Update(object any) error {
	pod := object.(*corev1.Pod)
	e.n.keepAddress(pod)
	if stageOf(pod) == stay {
		e.n.forget(pod)
	} else {
		e.n.add(e.n, pod)
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (e ears) Delete(object any) error {
	pod := object.(*corev1.Pod)
	e.n.freeAddress(pod)
	e.n.forget(pod)
	return nil
}

// Replace implements cache.ReflectorStore.
func (e ears) Replace(all []any, _ string) error {
	there := map[types.UID]bool{}
	for _, object := range all {
		there[object.(*corev1.Pod).UID] = true
	}
	e.n.keepOnly(there)
	for _, object := range all {
		if err := e.Update(object); err != nil {
			return err
		}
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (e ears) Resync() error { return nil }
