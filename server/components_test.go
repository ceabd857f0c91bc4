package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/controllers"
	"github.com/plinth-io/plinth/server/simulation"
)

// A component asks as who it is, with the rights of that user. Its check is in /readyz, its failure an alarm, and the metrics
// that it has registered with upstream's registry are in /metrics.
func TestComponents(t *testing.T) {
	counter := metrics.NewCounter(&metrics.CounterOpts{Name: "test_component_total", Help: "What a component of a test counts."})
	legacyregistry.MustRegister(counter)
	var fault atomic.Pointer[error]
	asked := make(chan error, 2)
	s := start(t, Config{Components: []controllers.Component{{Name: "tester", Run: func(ctx context.Context, host controllers.Host) error {
		counter.Inc()
		client := kubernetes.NewForConfigOrDie(host.As(&user.DefaultInfo{Name: user.KubeScheduler, Groups: []string{user.AllAuthenticated}}))
		_, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		asked <- err
		_, err = client.CoreV1().Secrets("default").List(ctx, metav1.ListOptions{})
		asked <- err
		host.Works(func() error {
			if err := fault.Load(); err != nil {
				return *err
			}
			return nil
		})
		<-ctx.Done()
		return nil
	}}}})
	if err := <-asked; err != nil {
		t.Errorf("the scheduler lists nodes: %v", err)
	}
	if err := <-asked; !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), user.KubeScheduler) {
		t.Errorf("the scheduler lists secrets: %v", err)
	}
	ready := func(code int, line string) {
		t.Helper()
		apitest.Eventually(t, "/readyz has "+line, func() bool {
			got, _, body := apitest.Do(t, apitest.Admin(t, s), http.MethodGet, s.URL()+"/readyz?verbose", "")
			return got == code && strings.Contains(body, line)
		})
	}
	ready(http.StatusOK, "[+]tester ok\n")
	unwell := errors.New("not well: some-controller")
	fault.Store(&unwell)
	ready(http.StatusInternalServerError, "[-]tester failed: not well: some-controller\n")
	if facts := s.condition.facts(); facts.Components != "tester not well: some-controller" {
		t.Errorf("the alarm looks at %q", facts.Components)
	}
	fault.Store(nil)
	ready(http.StatusOK, "[+]tester ok\n")
	_, _, body := apitest.Do(t, apitest.Admin(t, s), http.MethodGet, s.URL()+"/metrics", "")
	for _, line := range []string{"\ntest_component_total 1\n", "\n# TYPE apiserver_request_total counter\n", "\n# TYPE go_goroutines gauge\n"} {
		if strings.Count(body, line) != 1 {
			t.Errorf("%d times %q in /metrics", strings.Count(body, line), line)
		}
	}
}

// Without components nothing of upstream's registry is in /metrics but what plinth wants.
func TestNoComponents(t *testing.T) {
	counter := metrics.NewCounter(&metrics.CounterOpts{Name: "test_unwanted_total", Help: "What nobody wants."})
	legacyregistry.MustRegister(counter)
	s := start(t, Config{})
	if _, _, body := apitest.Do(t, apitest.Admin(t, s), http.MethodGet, s.URL()+"/metrics", ""); strings.Contains(body, "test_unwanted_total") {
		t.Error("/metrics has what a component would count")
	}
}

// A simulated node has the rights of a kubelet and is taken for one: it runs its pods, and may not touch those of others.
func TestSimulatedNodes(t *testing.T) {
	// Requests of nodes never end, so that nothing waits for their end.
	s := open(t, Config{Controllers: []string{"serviceaccount"}, Components: []controllers.Component{simulation.Config{Nodes: 2}.Component()}})
	client := kubernetes.NewForConfigOrDie(s.RESTConfig())
	apitest.Eventually(t, "the pod is taken", func() bool {
		_, err := client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec:       corev1.PodSpec{NodeName: "node-2", Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}}},
		}, metav1.CreateOptions{})
		return err == nil
	})
	apitest.Eventually(t, "the pod runs", func() bool {
		pod, err := client.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodRunning
	})
	pod, err := client.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{})
	must(t, err)
	if !slices.ContainsFunc(pod.ManagedFields, func(m metav1.ManagedFieldsEntry) bool { return m.Manager == "kubelet" && m.Subresource == "status" }) {
		t.Errorf("no kubelet has written its status: %v", pod.ManagedFields)
	}
	must(t, client.CoreV1().Pods("default").Delete(t.Context(), "web", metav1.DeleteOptions{}))
	apitest.Eventually(t, "the pod is gone", func() bool {
		_, err := client.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}
