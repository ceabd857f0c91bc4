package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/kind"
)

// clusterVariable says which dialects TestCluster runs on, separated by commas. Without it
// there is nothing to test here: to build a cluster's components takes minutes, so that
// make test-cluster asks for it and nobody else does.
const clusterVariable = "PLINTH_TEST_CLUSTER"

// TestCluster runs a cluster's control plane on plinth: kube-controller-manager and
// kube-scheduler themselves, a kubelet and kwok for the nodes, and helm and kubectl as its
// users.
func TestCluster(t *testing.T) {
	if os.Getenv(clusterVariable) == "" {
		t.Skipf("%s is not set; make test-cluster sets it", clusterVariable)
	}
	bin := t.TempDir()
	must(t, buildCluster(bin))
	eachWanted(t, clusterVariable, func(t *testing.T, d logtest.Dialect) {
		testCluster(t, newRealCluster(t, bin, kind.Release, d.Fresh(t), false))
	})
}

// TestClusterInside does the same with a plinth that is its own controller manager and scheduler, on each of the
// dialects.
func TestClusterInside(t *testing.T) {
	needComponents(t)
	bin := t.TempDir()
	must(t, buildCluster(bin))
	eachWanted(t, clusterVariable, func(t *testing.T, d logtest.Dialect) {
		testCluster(t, newRealCluster(t, bin, kind.Release, d.Fresh(t), true))
	})
}

// TestClusterSkew does the same with a kubelet and a kube-controller-manager of the oldest release that kubelets may
// have, on the first of the dialects.
func TestClusterSkew(t *testing.T) {
	wanted, _, _ := strings.Cut(os.Getenv(clusterVariable), ",")
	d := slices.IndexFunc(logtest.Dialects, func(d logtest.Dialect) bool { return d.Name == wanted })
	if d < 0 {
		t.Skipf("%s is not set; make test-cluster sets it", clusterVariable)
	}
	bin := t.TempDir()
	must(t, buildCluster(bin))
	older := buildOlder(t, bin)
	testCluster(t, newRealCluster(t, bin, older, logtest.Dialects[d].Fresh(t), false))
}

// The nodes: all pods go to a-1 to a-5 but those that tolerate losable nodes.
const losableNodes = 2

func testCluster(t *testing.T, c *realCluster) {
	for i := range 5 {
		c.addNode(t, fmt.Sprintf("a-%d", i+1), "a")
	}
	for i := range losableNodes {
		c.addNode(t, fmt.Sprintf("b-%d", i+1), "b", losable)
	}
	c.soon(t, "the nodes are ready", func() bool {
		list, err := c.kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		must(t, err)
		return !slices.ContainsFunc(list.Items, func(n corev1.Node) bool { return !isReady(&n) })
	})
	t.Run("scenarios", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *realCluster, string){
			"deployment": testDeployment, "statefulset": testStatefulSet, "daemonset": testDaemonSet,
			"job": testJob, "cronjob": testCronJob, "autoscaler": testAutoscaler, "disruption": testDisruption,
			"service": testService, "accounts": testAccounts, "namespace": testNamespace, "helm": testHelm, "nodeloss": testNodeLoss,
			"kubelet": testKubelet, "join": testNodeJoin, "join-command": testJoinCommand,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c.addNamespace(t, name)
				test(t, c, name)
			})
		}
	})
	for _, p := range c.components {
		if lines := p.complaints(); len(lines) > 0 {
			t.Errorf("%s complained %d times: %.2000s", p.name, len(lines), strings.Join(lines, ""))
		}
	}
	if c.inside {
		t.Run("inside", func(t *testing.T) { testInside(t, c) })
	} else {
		t.Run("delegation", func(t *testing.T) { testDelegation(t, c) })
	}
	t.Run("identities", func(t *testing.T) { testIdentities(t, c) })
	t.Run("restart", func(t *testing.T) { testKubeletRestart(t, c) })
}

// clusterPatience is for what takes controllers several rounds, on a machine that is busy.
const clusterPatience = 4 * time.Minute

func (c *realCluster) soon(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(clusterPatience); !condition(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func (c *realCluster) addNamespace(t *testing.T, name string) {
	t.Helper()
	_, err := c.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(t, err)
	c.soon(t, "there is the default account of "+name, func() bool {
		_, err := c.kube.CoreV1().ServiceAccounts(name).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
}

func labelsOf(name string) map[string]string { return map[string]string{"app": name} }

func selectorOf(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: labelsOf(name)}
}

func podTemplate(name string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labelsOf(name)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/one"}}},
	}
}

func (c *realCluster) addDeployment(t *testing.T, namespace string, replicas int32, change ...func(*corev1.PodSpec)) {
	t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: selectorOf("web"), Template: podTemplate("web"),
	}}
	for _, f := range change {
		f(&d.Spec.Template.Spec)
	}
	_, err := c.kube.AppsV1().Deployments(namespace).Create(t.Context(), d, metav1.CreateOptions{})
	must(t, err)
}

// pods are those of a namespace that are not on their way out.
func (c *realCluster) pods(t *testing.T, namespace string) []corev1.Pod {
	t.Helper()
	list, err := c.kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// running waits until n pods are ready, on nodes, with the image, and there are no others.
func (c *realCluster) running(t *testing.T, namespace string, n int, image string) []corev1.Pod {
	t.Helper()
	var pods []corev1.Pod
	c.soon(t, fmt.Sprintf("%d pods of %s run", n, image), func() bool {
		pods = c.pods(t, namespace)
		return len(pods) == n && !slices.ContainsFunc(pods, func(p corev1.Pod) bool {
			return p.Spec.Containers[0].Image != image || p.Spec.NodeName == "" || p.Status.Phase != corev1.PodRunning || p.Status.PodIP == ""
		})
	})
	return pods
}

// A Deployment of 50 becomes ready, rolls out, rolls back and scales.
func testDeployment(t *testing.T, c *realCluster, namespace string) {
	begun := time.Now()
	c.addDeployment(t, namespace, 50)
	admitted := c.running(t, namespace, 50, "example.com/one")[0].Spec
	t.Logf("50 pods run after %v", time.Since(begun).Round(time.Millisecond))
	if len(admitted.Volumes) != 1 || len(admitted.Tolerations) != 2 || admitted.Priority == nil {
		t.Errorf("admission has left a pod without its token, tolerations or priority: %v", admitted)
	}
	c.rolledOut(t, namespace)
	c.run(t, "kubectl", "-n", namespace, "set", "image", "deployment/web", "main=example.com/two")
	c.rolledOut(t, namespace)
	c.running(t, namespace, 50, "example.com/two")
	c.run(t, "kubectl", "-n", namespace, "rollout", "undo", "deployment/web")
	c.rolledOut(t, namespace)
	c.running(t, namespace, 50, "example.com/one")
	c.run(t, "kubectl", "-n", namespace, "scale", "deployment/web", "--replicas=7")
	c.running(t, namespace, 7, "example.com/one")
	if history := c.run(t, "kubectl", "-n", namespace, "rollout", "history", "deployment/web"); !strings.Contains(history, "\n3 ") {
		t.Errorf("history after a change and its undoing: %s", history)
	}
}

func (c *realCluster) rolledOut(t *testing.T, namespace string) {
	t.Helper()
	out := c.run(t, "kubectl", "-n", namespace, "rollout", "status", "deployment/web", "--timeout="+clusterPatience.String())
	if !strings.Contains(out, "successfully rolled out") {
		t.Fatalf("rollout status: %s", out)
	}
}

// The pods of a StatefulSet have their names, one after the other, and get them again.
func testStatefulSet(t *testing.T, c *realCluster, namespace string) {
	_, err := c.kube.AppsV1().StatefulSets(namespace).Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec:       appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3), ServiceName: "db", Selector: selectorOf("db"), Template: podTemplate("db")},
	}, metav1.CreateOptions{})
	must(t, err)
	pods := c.running(t, namespace, 3, "example.com/one")
	for i, p := range pods {
		if p.Name != fmt.Sprintf("db-%d", i) || i > 0 && p.CreationTimestamp.Before(&pods[i-1].CreationTimestamp) {
			t.Errorf("pod %d is %s of %v", i, p.Name, p.CreationTimestamp)
		}
	}
	must(t, c.kube.CoreV1().Pods(namespace).Delete(t.Context(), "db-1", metav1.DeleteOptions{}))
	c.soon(t, "there is another db-1", func() bool {
		p, err := c.kube.CoreV1().Pods(namespace).Get(t.Context(), "db-1", metav1.GetOptions{})
		return err == nil && p.UID != pods[1].UID && p.Status.Phase == corev1.PodRunning
	})
	c.run(t, "kubectl", "-n", namespace, "scale", "statefulset/db", "--replicas=1")
	if left := c.running(t, namespace, 1, "example.com/one"); left[0].UID != pods[0].UID {
		t.Errorf("db-0 did not stay: %s", left[0].Name)
	}
}

// A DaemonSet has a pod on every node that it may be on.
func testDaemonSet(t *testing.T, c *realCluster, namespace string) {
	template := podTemplate("agent")
	template.Spec.NodeSelector = map[string]string{"kwok": "a"}
	_, err := c.kube.AppsV1().DaemonSets(namespace).Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec:       appsv1.DaemonSetSpec{Selector: selectorOf("agent"), Template: template},
	}, metav1.CreateOptions{})
	must(t, err)
	pods := c.running(t, namespace, 5, "example.com/one")
	nodes := map[string]bool{}
	for _, p := range pods {
		nodes[p.Spec.NodeName] = true
	}
	if len(nodes) != 5 {
		t.Errorf("5 pods are on %d nodes", len(nodes))
	}
	c.addNode(t, "a-6", "a")
	c.running(t, namespace, 6, "example.com/one")
}

func jobSpec(completions int32) batchv1.JobSpec {
	template := podTemplate("job")
	template.Labels = nil
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return batchv1.JobSpec{Completions: &completions, Parallelism: ptr.To[int32](2), Template: template}
}

// A Job completes; with a time to live it goes, with its pods.
func testJob(t *testing.T, c *realCluster, namespace string) {
	jobs := c.kube.BatchV1().Jobs(namespace)
	_, err := jobs.Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "sum"}, Spec: jobSpec(5)}, metav1.CreateOptions{})
	must(t, err)
	c.soon(t, "the job is complete", func() bool {
		job, err := jobs.Get(t.Context(), "sum", metav1.GetOptions{})
		must(t, err)
		return job.Status.Succeeded == 5 && job.Status.CompletionTime != nil
	})
	spec := jobSpec(2)
	spec.TTLSecondsAfterFinished = ptr.To[int32](0)
	_, err = jobs.Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "brief"}, Spec: spec}, metav1.CreateOptions{})
	must(t, err)
	c.soon(t, "the brief job is gone", func() bool {
		_, err := jobs.Get(t.Context(), "brief", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	c.soon(t, "only the pods of the other are left", func() bool { return len(c.pods(t, namespace)) == 5 })
}

// A CronJob starts a Job each minute, which completes.
func testCronJob(t *testing.T, c *realCluster, namespace string) {
	_, err := c.kube.BatchV1().CronJobs(namespace).Create(t.Context(), &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: "tick"},
		Spec:       batchv1.CronJobSpec{Schedule: "* * * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: jobSpec(1)}},
	}, metav1.CreateOptions{})
	must(t, err)
	c.soon(t, "a job of the cron job was successful", func() bool {
		cron, err := c.kube.BatchV1().CronJobs(namespace).Get(t.Context(), "tick", metav1.GetOptions{})
		must(t, err)
		return cron.Status.LastSuccessfulTime != nil
	})
}

// A HorizontalPodAutoscaler is one object in both versions, and its controller says that it
// can read the scale but there are no metrics.
func testAutoscaler(t *testing.T, c *realCluster, namespace string) {
	c.addDeployment(t, namespace, 2)
	c.running(t, namespace, 2, "example.com/one")
	_, err := c.kube.AutoscalingV1().HorizontalPodAutoscalers(namespace).Create(t.Context(), &autoscalingv1.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
			MinReplicas:    ptr.To[int32](3), MaxReplicas: 5, TargetCPUUtilizationPercentage: ptr.To[int32](50),
		},
	}, metav1.CreateOptions{})
	must(t, err)
	c.running(t, namespace, 3, "example.com/one") // at least minReplicas, whatever the metrics
	c.soon(t, "the controller has judged the autoscaler", func() bool {
		hpa, err := c.kube.AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(t.Context(), "web", metav1.GetOptions{})
		must(t, err)
		return slices.ContainsFunc(hpa.Status.Conditions, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
			return c.Type == autoscalingv2.ScalingActive && c.Status == corev1.ConditionFalse && c.Reason == "FailedGetResourceMetric"
		})
	})
}

// Evictions stop at the budget and go on when a replacement is ready.
func testDisruption(t *testing.T, c *realCluster, namespace string) {
	c.addDeployment(t, namespace, 3)
	before := c.running(t, namespace, 3, "example.com/one")
	budgets := c.kube.PolicyV1().PodDisruptionBudgets(namespace)
	_, err := budgets.Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(3)), Selector: selectorOf("web")},
	}, metav1.CreateOptions{})
	must(t, err)
	allowed := func(n int32) func() bool {
		return func() bool {
			b, err := budgets.Get(t.Context(), "web", metav1.GetOptions{})
			must(t, err)
			return b.Status.ObservedGeneration == b.Generation && b.Status.ExpectedPods > 0 && b.Status.DisruptionsAllowed == n
		}
	}
	evict := func(name string) error {
		return c.kube.PolicyV1().Evictions(namespace).Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}})
	}
	c.soon(t, "no disruption is allowed", allowed(0))
	if err := evict(before[0].Name); !apierrors.IsTooManyRequests(err) {
		t.Errorf("eviction against the budget: %v", err)
	}
	c.run(t, "kubectl", "-n", namespace, "patch", "pdb", "web", "--type=merge", `--patch={"spec":{"minAvailable":2}}`)
	for _, p := range before { // each waits for the one before to be replaced
		c.soon(t, "a pod may be evicted", func() bool {
			err := evict(p.Name)
			if err != nil && !apierrors.IsTooManyRequests(err) {
				t.Fatal(err)
			}
			return err == nil
		})
	}
	for _, p := range c.running(t, namespace, 3, "example.com/one") {
		if slices.ContainsFunc(before, func(b corev1.Pod) bool { return b.UID == p.UID }) {
			t.Errorf("%s was evicted and is there", p.Name)
		}
	}
}

// A Service's EndpointSlices have the ready pods.
func testService(t *testing.T, c *realCluster, namespace string) {
	c.addDeployment(t, namespace, 3)
	_, err := c.kube.CoreV1().Services(namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.ServiceSpec{Selector: labelsOf("web"), Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	must(t, err)
	pods := c.running(t, namespace, 3, "example.com/one")
	c.soon(t, "the endpoints are the pods", func() bool {
		list, err := c.kube.DiscoveryV1().EndpointSlices(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=web"})
		must(t, err)
		ready := map[string]bool{}
		for _, slice := range list.Items {
			for _, e := range slice.Endpoints {
				ready[e.Addresses[0]] = ptr.Deref(e.Conditions.Ready, false)
			}
		}
		return len(ready) == 3 && ready[pods[0].Status.PodIP] && ready[pods[1].Status.PodIP] && ready[pods[2].Status.PodIP]
	})
}

// The controller manager keeps the default account and the authority, and its tokens, signed
// with plinth's key, are good.
func testAccounts(t *testing.T, c *realCluster, namespace string) {
	_, err := c.kube.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "token", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}, metav1.CreateOptions{})
	must(t, err)
	var token string
	c.soon(t, "the secret has a token", func() bool {
		s, err := c.kube.CoreV1().Secrets(namespace).Get(t.Context(), "token", metav1.GetOptions{})
		must(t, err)
		token = string(s.Data[corev1.ServiceAccountTokenKey])
		return token != ""
	})
	who := c.run(t, "kubectl", "auth", "whoami", "--token="+token, "--server="+c.plinth.url, "--kubeconfig="+c.anonymous(t), "-o", "jsonpath={.status.userInfo.username}")
	if want := "system:serviceaccount:" + namespace + ":default"; who != want {
		t.Errorf("the token is of %q, want %s", who, want)
	}
	c.soon(t, "the authority is published", func() bool {
		cm, err := c.kube.CoreV1().ConfigMaps(namespace).Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
		return err == nil && strings.Contains(cm.Data["ca.crt"], "BEGIN CERTIFICATE")
	})
}

// A namespace goes with everything in it.
func testNamespace(t *testing.T, c *realCluster, namespace string) {
	c.addDeployment(t, namespace, 20)
	c.running(t, namespace, 20, "example.com/one")
	c.run(t, "kubectl", "-n", namespace, "create", "configmap", "held")
	c.run(t, "kubectl", "-n", namespace, "patch", "configmap", "held", "--type=merge", `--patch={"metadata":{"finalizers":["example.com/hold"]}}`)
	must(t, c.kube.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}))
	c.soon(t, "the finalizer alone holds the namespace", func() bool {
		list, err := c.kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		ns, err := c.kube.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
		must(t, err)
		return len(list.Items) == 0 && slices.ContainsFunc(ns.Status.Conditions, func(c corev1.NamespaceCondition) bool {
			return c.Type == corev1.NamespaceFinalizersRemaining && strings.Contains(c.Message, "example.com/hold in 1 resource instances")
		})
	})
	c.run(t, "kubectl", "-n", namespace, "patch", "configmap", "held", "--type=merge", `--patch={"metadata":{"finalizers":null}}`)
	c.soon(t, "the namespace is gone", func() bool {
		_, err := c.kube.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// Helm installs a chart with a hook, upgrades, rolls back and uninstalls it.
func testHelm(t *testing.T, c *realCluster, namespace string) {
	chart, err := filepath.Abs(filepath.Join("testdata", "cluster", "chart"))
	must(t, err)
	helm := func(args ...string) string { return c.run(t, "helm", append(args, "-n", namespace)...) }
	wait := []string{"--wait", "--timeout=" + clusterPatience.String()}
	// helm waits until enough pods are ready, but not until those that are too many are gone.
	expect := func(replicas int, image, greeting string) {
		t.Helper()
		cm, err := c.kube.CoreV1().ConfigMaps(namespace).Get(t.Context(), "demo", metav1.GetOptions{})
		must(t, err)
		if cm.Data["greeting"] != greeting {
			t.Errorf("greeting %q, want %q", cm.Data["greeting"], greeting)
		}
		c.soon(t, fmt.Sprintf("%d pods of %s are ready", replicas, image), func() bool {
			d, err := c.kube.AppsV1().Deployments(namespace).Get(t.Context(), "demo", metav1.GetOptions{})
			must(t, err)
			return int(d.Status.ReadyReplicas) == replicas && d.Spec.Template.Spec.Containers[0].Image == image
		})
	}
	helm(append([]string{"install", "demo", chart}, wait...)...)
	expect(2, "example.com/site:1", "hello")
	helm(append([]string{"upgrade", "demo", chart, "--set=replicas=4,image=example.com/site:2,greeting=good day"}, wait...)...)
	expect(4, "example.com/site:2", "good day")
	helm(append([]string{"rollback", "demo", "1"}, wait...)...)
	expect(2, "example.com/site:1", "hello")
	if history := helm("history", "demo"); !strings.Contains(history, "Rollback to 1") {
		t.Errorf("history: %s", history)
	}
	helm(append([]string{"uninstall", "demo"}, wait...)...)
	c.soon(t, "nothing of the release is left", func() bool {
		list, err := c.kube.AppsV1().Deployments(namespace).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		return len(list.Items) == 0 && !slices.ContainsFunc(c.pods(t, namespace), func(p corev1.Pod) bool { return p.Labels["release"] == "demo" })
	})
}

var losable = corev1.Taint{Key: "example.com/losable", Effect: corev1.TaintEffectNoSchedule}

// When the kubelets of some nodes are heard of no more, their pods are replaced elsewhere,
// and go themselves when the nodes are deleted.
func testNodeLoss(t *testing.T, c *realCluster, namespace string) {
	c.addDeployment(t, namespace, 4, func(spec *corev1.PodSpec) {
		soon := ptr.To(int64(2)) // instead of the five minutes that admission gives pods
		spec.Tolerations = []corev1.Toleration{
			{Key: losable.Key, Operator: corev1.TolerationOpExists},
			{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: soon},
			{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: soon},
		}
		spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
			Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "kwok", Operator: corev1.NodeSelectorOpIn, Values: []string{"b"}}}},
		}}}}
	})
	lost := map[string]bool{}
	for _, p := range c.running(t, namespace, 4, "example.com/one") {
		if strings.HasPrefix(p.Spec.NodeName, "b-") {
			lost[p.Name] = true
		}
	}
	if len(lost) == 0 {
		t.Fatal("no pod is on the nodes that will be lost")
	}
	c.nodes["b"].stop()
	c.soon(t, "four pods run on the other nodes", func() bool {
		return len(slices.DeleteFunc(c.pods(t, namespace), func(p corev1.Pod) bool {
			return p.Status.Phase != corev1.PodRunning || !strings.HasPrefix(p.Spec.NodeName, "a-")
		})) == 4
	})
	for i := range losableNodes {
		must(t, c.kube.CoreV1().Nodes().Delete(t.Context(), fmt.Sprintf("b-%d", i+1), metav1.DeleteOptions{}))
	}
	c.soon(t, "the lost pods are gone", func() bool {
		list, err := c.kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		return !slices.ContainsFunc(list.Items, func(p corev1.Pod) bool { return lost[p.Name] })
	})
}

// anonymous returns a kubeconfig of nobody, for a client that has a token.
func (c *realCluster) anonymous(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster: {server: %q, certificate-authority: %q}\ncontexts:\n- name: c\n  context: {cluster: c, user: u}\nusers:\n- name: u\ncurrent-context: c\n",
		c.plinth.url, filepath.Join(c.plinth.dir, "pki", "ca.crt"))
	must(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}
