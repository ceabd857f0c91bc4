package controllers_test

import (
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/controllers"
)

// pod is a row of a table. The node "there" exists and is ready, and the node "broken" is out of
// service.
type pod struct {
	name, node string
	phase      corev1.PodPhase
	reason     string
	deleted    bool
	stays      bool
}

func TestPodGC(t *testing.T) {
	tests := []pod{
		{name: "healthy", node: "there", phase: corev1.PodRunning, stays: true},
		{name: "orphan", node: "gone", phase: corev1.PodRunning},
		{name: "unscheduled", phase: corev1.PodPending, stays: true},
		{name: "ending", node: "there", phase: corev1.PodRunning, deleted: true, stays: true},
		{name: "on-broken", node: "broken", phase: corev1.PodRunning, stays: true},
		{name: "ending-on-broken", node: "broken", phase: corev1.PodRunning, deleted: true},
		{name: "evicted", node: "there", phase: corev1.PodFailed, reason: "Evicted"},
		{name: "a-ended", node: "there", phase: corev1.PodSucceeded},
		{name: "b-ended", node: "there", phase: corev1.PodSucceeded, stays: true},
	}
	c := openFixture(t)
	bootstrap(t, c, here)
	c.addNode(t, "there", corev1.ConditionTrue)
	c.addNode(t, "broken", corev1.ConditionUnknown, corev1.Taint{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute})
	for _, p := range tests {
		c.addPod(t, p)
	}
	m, err := controllers.New(controllers.Config{API: controllers.API{Client: c.Config, Kinds: c.Kinds}, Store: c.Store, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.CollectPods(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for _, p := range tests {
		_, err := c.Client.CoreV1().Pods("default").Get(t.Context(), p.name, metav1.GetOptions{})
		if stays := err == nil; stays != p.stays {
			t.Errorf("%s stays: %v, want %v (%v)", p.name, stays, p.stays, err)
		}
	}
}

func (c *fixture) addNode(t *testing.T, name string, ready corev1.ConditionStatus, taints ...corev1.Taint) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Taints: taints}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	if _, err := c.Client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (c *fixture) addPod(t *testing.T, p pod) {
	t.Helper()
	pods := c.Client.CoreV1().Pods("default")
	o, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.name}, Spec: corev1.PodSpec{
		NodeName: p.node, Containers: []corev1.Container{{Name: "c", Image: "i"}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o.Status.Phase, o.Status.Reason = p.phase, p.reason
	if _, err := pods.UpdateStatus(t.Context(), o, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if p.deleted {
		if err := pods.Delete(t.Context(), p.name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
