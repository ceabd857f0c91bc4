package main

import (
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/plinth-io/plinth/bench/torture"
	"github.com/plinth-io/plinth/dialects/logtest"
)

// rollingReplicas is how many pods the Deployment of TestClusterKilled has.
const rollingReplicas = 60

// TestClusterKilled kills the plinth that runs the controllers in the middle of a rollout. On SQLite the next start goes on with it; on
// servers another replica does, when the lease of the first has ended.
func TestClusterKilled(t *testing.T) {
	needComponents(t)
	eachWanted(t, clusterVariable, func(t *testing.T, d logtest.Dialect) {
		dsn, dir := d.Fresh(t), t.TempDir()
		serve := func(name string) *process {
			return serveFor(t, filepath.Join(dir, name), dsn, "--cluster", "--simulate-nodes=3")
		}
		first := serve("first")
		r := &rolling{t: t, client: kubernetes.NewForConfigOrDie(first.config(t))}
		r.create()
		next := first
		if d.Name != "sqlite" {
			must(t, torture.CopyAuthority(first.dir, filepath.Join(dir, "second")))
			next = serve("second")
		}
		r.roll()
		r.await("the rollout has begun", func(s appsv1.DeploymentStatus) bool { return s.UpdatedReplicas >= rollingReplicas/6 })
		first.kill()
		if next == first {
			next = serve("first")
		}
		r.client = kubernetes.NewForConfigOrDie(next.config(t))
		before, begun := r.started(), time.Now()
		if before == rollingReplicas {
			t.Error("the rollout had ended before the kill")
		}
		soon(t, "the rollout goes on", func() bool { return r.started() > before })
		t.Logf("with %d of %d pods replaced, it went on after %v", before, rollingReplicas, time.Since(begun).Round(10*time.Millisecond))
		r.await("all are replaced", func(s appsv1.DeploymentStatus) bool {
			return s.UpdatedReplicas == rollingReplicas && s.AvailableReplicas == rollingReplicas && s.Replicas == rollingReplicas
		})
	})
}

// rolling is a Deployment that is rolled out.
type rolling struct {
	t      *testing.T
	client kubernetes.Interface
}

// create makes the Deployment, whose pods may be changed before, and waits until all of them are ready.
func (r *rolling) create(change ...func(*corev1.PodSpec)) {
	r.t.Helper()
	label := map[string]string{"app": "web"}
	n := int32(rollingReplicas)
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/web:1"}}}
	for _, f := range change {
		f(&pod)
	}
	_, err := r.client.AppsV1().Deployments("default").Create(r.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: label}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: label},
			Spec:       pod,
		}},
	}, metav1.CreateOptions{})
	must(r.t, err)
	r.await("all are ready", func(s appsv1.DeploymentStatus) bool { return s.AvailableReplicas == rollingReplicas })
}

func (r *rolling) roll() {
	r.t.Helper()
	patch := []byte(`{"spec":{"template":{"metadata":{"labels":{"second":"true"}}}}}`)
	_, err := r.client.AppsV1().Deployments("default").Patch(r.t.Context(), "web", types.MergePatchType, patch, metav1.PatchOptions{})
	must(r.t, err)
}

func (r *rolling) await(what string, done func(appsv1.DeploymentStatus) bool) {
	r.t.Helper()
	soon(r.t, what, func() bool {
		now, err := r.client.AppsV1().Deployments("default").Get(r.t.Context(), "web", metav1.GetOptions{})
		must(r.t, err)
		return now.Status.ObservedGeneration == now.Generation && done(now.Status)
	})
}

// started returns how many pods of the second template run.
func (r *rolling) started() (n int) {
	r.t.Helper()
	pods, err := r.client.CoreV1().Pods("default").List(r.t.Context(), metav1.ListOptions{LabelSelector: "second", FieldSelector: "status.phase=Running"})
	must(r.t, err)
	return len(pods.Items)
}
