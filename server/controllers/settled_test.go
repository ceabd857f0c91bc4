package controllers_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/admission"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/controllers"
)

// An object that admission has counted and that is not stored yet stays counted, although the
// controller counts again in between.
func TestQuotaSettled(t *testing.T) {
	c := openFixture(t)
	bootstrap(t, c, here)
	var reserved admission.Reservations
	run(t, c, controllers.Config{Controllers: []string{"resourcequota"}, Reservations: &reserved})
	c.add(t, "default", "first")
	c.add(t, "default", "second")
	quotas := c.Client.CoreV1().ResourceQuotas("default")
	hard := corev1.ResourceList{"count/configmaps": resource.MustParse("5")}
	if _, err := quotas.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	used := func() *corev1.ResourceQuota {
		q, err := quotas.Get(t.Context(), "q", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	is := func(q *corev1.ResourceQuota, count int64) bool {
		value, ok := q.Status.Used["count/configmaps"]
		return ok && value.Value() == count
	}
	apitest.Eventually(t, "both are counted", func() bool { return is(used(), 2) })

	request, end := context.WithCancel(t.Context())
	reserved.Begin(request, "default")
	q := used()
	q.Status.Used["count/configmaps"] = resource.MustParse("3")
	if _, err := quotas.UpdateStatus(t.Context(), q, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.remove(t, "default", "first", metav1.DeletePropagationBackground)
	for until := time.Now().Add(300 * time.Millisecond); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		if q := used(); !is(q, 3) {
			t.Fatalf("counted while an object is not stored: %v", q.Status.Used)
		}
	}
	c.add(t, "default", "third")
	end()
	apitest.Eventually(t, "the stored object is counted", func() bool { return is(used(), 2) })
}
