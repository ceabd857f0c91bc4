package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plinth-io/plinth/cmd/plinth/kubectltest"
	"github.com/plinth-io/plinth/dialects/logtest"
)

// kubernetesManifests are the directories that users apply with kubectl apply -k.
var kubernetesManifests = []string{"docs/kubernetes/sqlite", "docs/kubernetes/postgres"}

// TestKubernetesManifests applies the manifests that run plinth on Kubernetes, by kubectl and by the server, and looks at
// what the server has made of them.
func TestKubernetesManifests(t *testing.T) {
	t.Parallel()
	p := serveFor(t, filepath.Join(t.TempDir(), "data"), logtest.SQLite(t))
	path, err := kubectltest.Path()
	must(t, err)
	kubectl := func(args ...string) string {
		t.Helper()
		return saidBy(t, exec.CommandContext(t.Context(), path, append(args, "--kubeconfig="+p.kubeconfig())...))
	}
	client := kubernetes.NewForConfigOrDie(p.config(t))
	for _, dir := range kubernetesManifests {
		applyKubernetes(t, kubectl, filepath.Join(repository, dir))
	}
	one, err := client.AppsV1().StatefulSets("plinth").Get(t.Context(), "plinth", metav1.GetOptions{})
	must(t, err)
	two, err := client.AppsV1().Deployments("plinth").Get(t.Context(), "plinth", metav1.GetOptions{})
	must(t, err)
	if *one.Spec.Replicas != 1 || *two.Spec.Replicas != 2 || two.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType {
		t.Errorf("%d replicas on SQLite, %d on Postgres by %s", *one.Spec.Replicas, *two.Spec.Replicas, two.Spec.Strategy.Type)
	}
	for _, spec := range []corev1.PodSpec{one.Spec.Template.Spec, two.Spec.Template.Spec} {
		wantPlinthPod(t, spec)
	}
}

// applyKubernetes applies a directory to a server: in a dry run of the server first, then strictly and with no warning, such as one of
// the pod security standards, and again, which changes nothing.
func applyKubernetes(t *testing.T, kubectl func(args ...string) string, dir string) {
	t.Helper()
	kubectl("apply", "-f", filepath.Join(filepath.Dir(dir), "base", "namespace.yaml"), "--warnings-as-errors")
	kubectl("apply", "-k", dir, "--server-side", "--dry-run=server", "--validate=strict", "--warnings-as-errors", "--force-conflicts")
	apply := func() string {
		t.Helper()
		kubectl("apply", "-k", dir, "--validate=strict", "--warnings-as-errors")
		return kubectl("get", "-k", dir, "-o", `jsonpath={range .items[*]}{.kind} {.metadata.resourceVersion}{"\n"}{end}`)
	}
	first := apply()
	if again := apply(); first != again || strings.Count(again, "\n") < 3 {
		t.Errorf("%s changes when it is applied again: from %s to %s", dir, first, again)
	}
}

// saidBy returns what a command prints, which must succeed.
func saidBy(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v: %s", cmd.Args, err, out)
	}
	return string(out)
}

// wantPlinthPod has the commands of a pod's containers parsed by plinth's own command line, and checks what pods of plinth need.
func wantPlinthPod(t *testing.T, spec corev1.PodSpec) {
	t.Helper()
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		command, rest, err := newRoot().Find(c.Args)
		must(t, err)
		if err := command.ParseFlags(rest); err != nil || !command.HasParent() {
			t.Errorf("%s runs plinth %v: %v", c.Name, c.Args, err)
		}
		if !regexp.MustCompile(`^ghcr\.io/plinth-io/plinth:v\d+\.\d+\.\d+$`).MatchString(c.Image) {
			t.Errorf("%s is of the image %s", c.Name, c.Image)
		}
		for _, e := range c.Env {
			if name := strings.TrimPrefix(e.Name, "PLINTH_"); name != "DB_PASSWORD" && newServe().Flags().Lookup(strings.ReplaceAll(strings.ToLower(name), "_", "-")) == nil {
				t.Errorf("%s has the variable %s, which plinth does not know", c.Name, e.Name)
			}
		}
	}
	stop := newServe().Flags().Lookup("shutdown-timeout").DefValue
	if stop != "30s" || *spec.TerminationGracePeriodSeconds < 45 {
		t.Errorf("the pod is killed after %d s, --shutdown-timeout is %s", *spec.TerminationGracePeriodSeconds, stop)
	}
}
