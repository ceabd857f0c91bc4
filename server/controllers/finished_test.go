package controllers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/controllers"
)

// Jobs are deleted when their time to live is over, whether they finish while the controller runs
// or before it starts.
func TestTTLAfterFinished(t *testing.T) {
	c := openFixture(t)
	bootstrap(t, c, here)
	c.addJob(t, "before", ptr.To[int32](0))
	c.finish(t, "before")
	run(t, c, controllers.Config{Controllers: []string{"ttl-after-finished", "garbagecollector"}})
	c.addJob(t, "now", ptr.To[int32](0))
	c.addJob(t, "later", ptr.To[int32](3600))
	c.addJob(t, "never", nil)
	c.addJob(t, "running", ptr.To[int32](0))
	for _, name := range []string{"later", "never", "now"} {
		c.finish(t, name)
	}
	apitest.Eventually(t, "the jobs whose time to live is over are gone", func() bool {
		list, err := c.Client.BatchV1().Jobs("default").List(t.Context(), metav1.ListOptions{})
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

func (c *fixture) addJob(t *testing.T, name string, ttl *int32) {
	t.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{
		TTLSecondsAfterFinished: ttl,
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}},
		}},
	}}
	if _, err := c.Client.BatchV1().Jobs("default").Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// finish writes the conditions that the job controller writes in two steps.
func (c *fixture) finish(t *testing.T, name string) {
	t.Helper()
	jobs := c.Client.BatchV1().Jobs("default")
	for _, condition := range []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed} {
		job, err := jobs.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		now := metav1.Now()
		if job.Status.StartTime == nil { // the start time is immutable, and the two steps may be in different seconds
			job.Status.StartTime = &now
		}
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now})
		if _, err := jobs.UpdateStatus(t.Context(), job, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
