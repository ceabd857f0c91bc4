package controllers_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/apitest"
)

// A quota's usage is counted when the quota is created, and again when an object that it counts
// is deleted. The test's quota is created after the controller has started.
func TestResourceQuota(t *testing.T) {
	c := openRunning(t, "resourcequota")
	c.add(t, "default", "before")
	hard := corev1.ResourceList{"count/configmaps": resource.MustParse("5"), "pods": resource.MustParse("3"), "requests.cpu": resource.MustParse("2")}
	quotas := c.Client.CoreV1().ResourceQuotas("default")
	_, err := quotas.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(what string, want map[corev1.ResourceName]string) {
		t.Helper()
		var used corev1.ResourceList
		apitest.Eventually(t, what, func() bool {
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
	expect("the objects that are there are counted", map[corev1.ResourceName]string{"count/configmaps": "1", "pods": "0", "requests.cpu": "0"})
	c.add(t, "default", "after")
	c.addPod(t, pod{name: "p", phase: corev1.PodRunning})
	c.remove(t, "default", "before", metav1.DeletePropagationBackground)
	expect("the objects are counted again after a deletion", map[corev1.ResourceName]string{"count/configmaps": "1", "pods": "1"})
}
