package control_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/plinth-io/plinth/server/control"
)

const rootCAName = "kube-root-ca.crt"

// The authority is in every namespace, stays what it is, and does not keep a namespace
// from ending.
func TestRootCA(t *testing.T) {
	c := openCluster(t)
	bootstrap(t, c, here)
	run(t, c, control.Config{RootCA: []byte("PEM"), Controllers: []string{"root-ca-cert-publisher", "namespace"}})
	c.addNamespace(t, "late")
	published := func(namespace string) bool {
		cm := c.get(t, namespace, rootCAName)
		return cm != nil && cm.Data["ca.crt"] == "PEM"
	}
	for _, namespace := range []string{"default", "kube-system", "late"} {
		eventually(t, "published in "+namespace, func() bool { return published(namespace) })
	}
	patch := []byte(`{"data":{"ca.crt":"other"}}`)
	if _, err := c.client.CoreV1().ConfigMaps("late").Patch(t.Context(), rootCAName, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is as it was", func() bool { return published("late") })
	c.remove(t, "late", rootCAName, metav1.DeletePropagationBackground)
	eventually(t, "it is there again", func() bool { return published("late") })
	if err := c.client.CoreV1().Namespaces().Delete(t.Context(), "late", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is gone", func() bool {
		_, err := c.client.CoreV1().Namespaces().Get(t.Context(), "late", metav1.GetOptions{})
		return errors.IsNotFound(err)
	})
}

func readRule(resource string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"get"}}
}

// A role that aggregates has the rules of those that fit its selector, as they change.
func TestClusterRoleAggregation(t *testing.T) {
	c := openRunning(t, "clusterrole-aggregation")
	roles := c.client.RbacV1().ClusterRoles()
	create := func(role *rbacv1.ClusterRole) {
		if _, err := roles.Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	fits := map[string]string{"aggregate": "yes"}
	part := func(name string, labels map[string]string) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Rules: []rbacv1.PolicyRule{readRule(name)}}
	}
	create(part("pods", fits))
	create(part("secrets", nil))
	create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "all"}, AggregationRule: &rbacv1.AggregationRule{
		ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: fits}},
	}})
	expect := func(what string, want ...rbacv1.PolicyRule) {
		eventually(t, what, func() bool {
			role, err := roles.Get(t.Context(), "all", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return cmp.Equal(role.Rules, want)
		})
	}
	expect("pods only", readRule("pods"))
	create(part("nodes", fits))
	expect("nodes too", readRule("nodes"), readRule("pods"))
	if err := roles.Delete(t.Context(), "pods", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("nodes only", readRule("nodes"))
}

// Jobs go when their time has come, with a controller that runs when they finish as with
// one that starts later.
func TestTTLAfterFinished(t *testing.T) {
	c := openCluster(t)
	bootstrap(t, c, here)
	c.addJob(t, "before", ptr.To[int32](0))
	c.finish(t, "before")
	run(t, c, control.Config{Controllers: []string{"ttl-after-finished", "garbagecollector"}})
	c.addJob(t, "now", ptr.To[int32](0))
	c.addJob(t, "later", ptr.To[int32](3600))
	c.addJob(t, "never", nil)
	c.addJob(t, "running", ptr.To[int32](0))
	for _, name := range []string{"later", "never", "now"} {
		c.finish(t, name)
	}
	eventually(t, "the jobs are gone whose time has come", func() bool {
		list, err := c.client.BatchV1().Jobs("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, job := range list.Items {
			left = append(left, job.Name)
		}
		return cmp.Equal(left, []string{"later", "never", "running"})
	})
}

func (c *cluster) addJob(t *testing.T, name string, ttl *int32) {
	t.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{
		TTLSecondsAfterFinished: ttl,
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}},
		}},
	}}
	if _, err := c.client.BatchV1().Jobs("default").Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// finish says of a job what the job controller says in two steps.
func (c *cluster) finish(t *testing.T, name string) {
	t.Helper()
	jobs := c.client.BatchV1().Jobs("default")
	for _, condition := range []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed} {
		job, err := jobs.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		now := metav1.Now()
		if job.Status.StartTime == nil { // may not change, and the steps may be in two seconds
			job.Status.StartTime = &now
		}
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now})
		if _, err := jobs.UpdateStatus(t.Context(), job, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// pod is one of a table; its node "there" exists and is ready, "broken" is out of service.
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
	c := openCluster(t)
	bootstrap(t, c, here)
	c.addNode(t, "there", corev1.ConditionTrue)
	c.addNode(t, "broken", corev1.ConditionUnknown, corev1.Taint{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute})
	for _, p := range tests {
		c.addPod(t, p)
	}
	m, err := control.New(control.Config{Client: c.config, Store: c.store, Kinds: c.kinds, Logf: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.CollectPods(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for _, p := range tests {
		_, err := c.client.CoreV1().Pods("default").Get(t.Context(), p.name, metav1.GetOptions{})
		if stays := err == nil; stays != p.stays {
			t.Errorf("%s stays: %v, want %v (%v)", p.name, stays, p.stays, err)
		}
	}
}

func (c *cluster) addNode(t *testing.T, name string, ready corev1.ConditionStatus, taints ...corev1.Taint) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Taints: taints}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	if _, err := c.client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) addPod(t *testing.T, p pod) {
	t.Helper()
	pods := c.client.CoreV1().Pods("default")
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

// A quota is counted, and counted again when what it counts goes; also one of the first
// kind that is made after the controller has started.
func TestResourceQuota(t *testing.T) {
	c := openRunning(t, "resourcequota")
	c.add(t, "default", "before")
	hard := corev1.ResourceList{"count/configmaps": resource.MustParse("5"), "pods": resource.MustParse("3"), "requests.cpu": resource.MustParse("2")}
	quotas := c.client.CoreV1().ResourceQuotas("default")
	_, err := quotas.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(what string, want map[corev1.ResourceName]string) {
		t.Helper()
		var used corev1.ResourceList
		eventually(t, what, func() bool {
			q, err := quotas.Get(t.Context(), "q", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			used = q.Status.Used
			for name, count := range want {
				if value, ok := used[name]; !ok || value.String() != count {
					return false
				}
			}
			return true
		})
	}
	expect("what there is was counted", map[corev1.ResourceName]string{"count/configmaps": "1", "pods": "0", "requests.cpu": "0"})
	c.add(t, "default", "after")
	c.addPod(t, pod{name: "p", phase: corev1.PodRunning})
	c.remove(t, "default", "before", metav1.DeletePropagationBackground)
	expect("a deletion makes it count", map[corev1.ResourceName]string{"count/configmaps": "1", "pods": "1"})
}
