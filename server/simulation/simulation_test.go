package simulation_test

import (
	"context"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/controllers"
	"github.com/plinth-io/plinth/server/simulation"
)

// simulate runs nodes until stop is called or the test ends, and returns when they work.
func simulate(t *testing.T, a *apitest.API, c simulation.Config) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	works, ended := make(chan struct{}), make(chan error, 1)
	host := controllers.Host{
		As:     func(user.Info) *clientrest.Config { return a.Config },
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Works:  func(func() error) { close(works) },
	}
	go func() { ended <- c.Component().Run(ctx, host) }()
	<-works
	done := false
	stop = func() {
		if done {
			return
		}
		done = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func addPod(t *testing.T, a *apitest.API, name, node string, owners ...metav1.OwnerReference) *corev1.Pod {
	t.Helper()
	pod, err := a.Client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{NodeName: node, InitContainers: []corev1.Container{{Name: "first", Image: "example.com/first"}},
			Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func getPod(t *testing.T, a *apitest.API, name string) *corev1.Pod {
	t.Helper()
	pod, err := a.Client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func inPhase(t *testing.T, a *apitest.API, name string, phase corev1.PodPhase) *corev1.Pod {
	t.Helper()
	apitest.Eventually(t, name+" is "+string(phase), func() bool { return getPod(t, a, name).Status.Phase == phase })
	return getPod(t, a, name)
}

func open(t *testing.T) *apitest.API {
	t.Helper()
	a := apitest.Open(t)
	for _, name := range []string{"default", corev1.NamespaceNodeLease} {
		if _, err := a.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// Nodes are ready, and have Leases, which end with them.
func TestNodes(t *testing.T) {
	a := open(t)
	simulate(t, a, simulation.Config{Nodes: 2})
	for _, name := range []string{"node-1", "node-2"} {
		var node *corev1.Node
		apitest.Eventually(t, name+" is there", func() (there bool) {
			var err error
			node, err = a.Client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
			return err == nil
		})
		if ready := node.Status.Conditions[len(node.Status.Conditions)-1]; ready.Type != corev1.NodeReady || ready.Status != corev1.ConditionTrue {
			t.Errorf("%s: %+v", name, ready)
		}
		apitest.Eventually(t, name+" has a Lease", func() bool {
			lease, err := a.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), name, metav1.GetOptions{})
			return err == nil && len(lease.OwnerReferences) == 1 && lease.OwnerReferences[0].UID == node.UID && *lease.Spec.HolderIdentity == name
		})
	}
}

// A pod that is bound to a node runs, with an address of its own. The pod of a Job succeeds. A pod that is deleted is gone. A
// pod that is bound to no node, or to another one, stays as it is.
func TestPods(t *testing.T) {
	a := open(t)
	simulate(t, a, simulation.Config{Nodes: 1})
	addPod(t, a, "elsewhere", "node-2")
	addPod(t, a, "nowhere", "")
	addPod(t, a, "one", "node-1")
	addPod(t, a, "two", "node-1")
	addPod(t, a, "job", "node-1", metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: "a"})
	addresses := map[string]bool{}
	for _, name := range []string{"one", "two"} {
		pod := inPhase(t, a, name, corev1.PodRunning)
		addresses[pod.Status.PodIP] = true
		if ip, err := netip.ParseAddr(pod.Status.PodIP); err != nil || !netip.MustParsePrefix("10.244.0.0/24").Contains(ip) {
			t.Errorf("%s has the address %q", name, pod.Status.PodIP)
		}
		if s := pod.Status; len(s.ContainerStatuses) != 1 || !s.ContainerStatuses[0].Ready || s.ContainerStatuses[0].State.Running == nil ||
			len(s.InitContainerStatuses) != 1 || s.InitContainerStatuses[0].State.Terminated == nil || s.StartTime == nil || s.HostIP == "" {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if len(addresses) != 2 {
		t.Errorf("two pods have the addresses %v", addresses)
	}
	if s := inPhase(t, a, "job", corev1.PodSucceeded).Status; s.ContainerStatuses[0].State.Terminated == nil || s.ContainerStatuses[0].Ready {
		t.Errorf("the job's pod: %+v", s)
	}
	for _, name := range []string{"one", "job"} {
		if err := a.Client.CoreV1().Pods("default").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		apitest.Eventually(t, name+" is gone", func() bool {
			_, err := a.Client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	}
	for _, name := range []string{"elsewhere", "nowhere"} {
		if phase := getPod(t, a, name).Status.Phase; phase != corev1.PodPending {
			t.Errorf("%s is %s", name, phase)
		}
	}
}

// After a restart pods keep their addresses, and new ones get others.
func TestRestart(t *testing.T) {
	a := open(t)
	stop := simulate(t, a, simulation.Config{Nodes: 1})
	addPod(t, a, "one", "node-1")
	before := inPhase(t, a, "one", corev1.PodRunning).Status
	stop()
	addPod(t, a, "two", "node-1")
	simulate(t, a, simulation.Config{Nodes: 1})
	two := inPhase(t, a, "two", corev1.PodRunning).Status
	after := getPod(t, a, "one").Status
	if after.PodIP != before.PodIP || !after.StartTime.Equal(before.StartTime) {
		t.Errorf("it had %s since %v, and has %s since %v", before.PodIP, before.StartTime, after.PodIP, after.StartTime)
	}
	if two.PodIP == before.PodIP {
		t.Errorf("both have %s", two.PodIP)
	}
}

// A node that is given addresses for its pods takes them from there, when it has them.
func TestRanges(t *testing.T) {
	a := open(t)
	simulate(t, a, simulation.Config{Nodes: 1, Ranges: true})
	addPod(t, a, "one", "node-1")
	time.Sleep(50 * time.Millisecond) // so that it is tried before
	if phase := getPod(t, a, "one").Status.Phase; phase != corev1.PodPending {
		t.Errorf("without addresses it is %s", phase)
	}
	apitest.Eventually(t, "the node has addresses", func() bool {
		node, err := a.Client.CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
		if err != nil {
			return false
		}
		node.Spec.PodCIDR, node.Spec.PodCIDRs = "10.9.8.0/24", []string{"10.9.8.0/24"}
		_, err = a.Client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{})
		return err == nil
	})
	if ip := inPhase(t, a, "one", corev1.PodRunning).Status.PodIP; ip != "10.9.8.1" {
		t.Errorf("it has %s", ip)
	}
}
