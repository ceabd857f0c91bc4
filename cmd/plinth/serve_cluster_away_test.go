package main

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/plinth-io/plinth/dialects/logtest"
)

const (
	databaseAway = time.Minute
	nodeGrace    = 20 * time.Second // until a node without renewals is unreachable
)

// TestClusterAway takes the database away for three times as long as nodes may be silent. No pod is evicted because of that, though
// each tolerates a node that is not reached for a second only: nobody knows of nodes meanwhile, and the time that they have begins
// again with the controllers.
func TestClusterAway(t *testing.T) {
	needComponents(t)
	db := logtest.StartPostgres(t)
	p := serveFor(t, t.TempDir()+"/data", logtest.CreateDatabase(t, db), "--cluster", "--simulate-nodes=3",
		"--kube-controller-manager-arg=node-monitor-grace-period="+nodeGrace.String(), "--kube-controller-manager-arg=node-monitor-period=1s")
	r := &rolling{t: t, client: kubernetes.NewForConfigOrDie(p.config(t))}
	r.create(func(pod *corev1.PodSpec) {
		second := int64(1)
		for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
			pod.Tolerations = append(pod.Tolerations, corev1.Toleration{Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &second})
		}
	})
	before := r.pods()
	db.Stop()
	expectAway(t, p)
	time.Sleep(databaseAway)
	must(t, db.Start())
	expectReady(t, p)
	back := time.Now()
	soon(t, "all nodes renew their leases again", func() bool {
		leases, err := r.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		renewed := 0
		for _, l := range leases.Items {
			if l.Spec.RenewTime.After(back) {
				renewed++
			}
		}
		return renewed == 3
	})
	time.Sleep(nodeGrace + 5*time.Second) // what is late by then is not late because of the database
	if after := r.pods(); !maps.Equal(after, before) {
		t.Errorf("pods before: %v; after: %v", before, after)
	}
}

// pods returns all pods that are not being deleted, by their names.
func (r *rolling) pods() map[string]types.UID {
	r.t.Helper()
	pods, err := r.client.CoreV1().Pods("default").List(r.t.Context(), metav1.ListOptions{})
	must(r.t, err)
	found := map[string]types.UID{}
	for _, p := range pods.Items {
		if p.DeletionTimestamp == nil {
			found[p.Name] = p.UID
		}
	}
	return found
}
