package controllers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/controllers"
	"github.com/plinth-io/plinth/server/kind"
)

func (c *fixture) gone(t testing.TB, namespace string, names ...string) {
	t.Helper()
	for _, name := range names {
		apitest.Eventually(t, name+" is gone", func() bool { return c.get(t, namespace, name) == nil })
	}
}

func ownedBy(owner *corev1.ConfigMap, blocks bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: &blocks}
}

// collectorKnows returns when the garbage collector has read all ConfigMaps so far. The collector
// reads them in order, so it has read the others when it deletes the dependent of one more pair.
func (c *fixture) collectorKnows(t *testing.T) {
	t.Helper()
	x := c.add(t, "default", "x")
	c.add(t, "default", "y", ownedBy(x, false))
	c.remove(t, "default", "x", metav1.DeletePropagationBackground)
	c.gone(t, "default", "x", "y")
}

func TestBackgroundDeletion(t *testing.T) {
	c := openRunning(t, "garbagecollector")
	a := c.add(t, "default", "a")
	b := c.add(t, "default", "b", ownedBy(a, false))
	c.add(t, "default", "c", ownedBy(b, true))
	c.add(t, "default", "other")
	c.remove(t, "default", "a", metav1.DeletePropagationBackground)
	c.gone(t, "default", "a", "b", "c")
	if c.get(t, "default", "other") == nil {
		t.Error("an object without owners is gone")
	}
}

// The owner stays, with a deletionTimestamp, until the dependents that block it are gone.
func TestForegroundDeletion(t *testing.T) {
	c := openRunning(t, "garbagecollector")
	a := c.add(t, "default", "a")
	c.add(t, "default", "blocking", ownedBy(a, true))
	c.add(t, "default", "free", ownedBy(a, false))
	c.setFinalizers(t, "default", "blocking", `["example.com/hold"]`)
	c.collectorKnows(t)
	c.remove(t, "default", "a", metav1.DeletePropagationForeground)
	c.gone(t, "default", "free")
	apitest.Eventually(t, "blocking is being deleted", func() bool { return c.get(t, "default", "blocking").DeletionTimestamp != nil })
	if owner := c.get(t, "default", "a"); owner == nil || owner.DeletionTimestamp == nil {
		t.Fatalf("owner is %v while a dependent blocks it", owner)
	}
	c.setFinalizers(t, "default", "blocking", "null")
	c.gone(t, "default", "blocking", "a")
}

func TestOrphanDeletion(t *testing.T) {
	c := openRunning(t, "garbagecollector")
	a := c.add(t, "default", "a")
	c.add(t, "default", "b", ownedBy(a, true))
	c.collectorKnows(t)
	c.remove(t, "default", "a", metav1.DeletePropagationOrphan)
	c.gone(t, "default", "a")
	if b := c.get(t, "default", "b"); b == nil || len(b.OwnerReferences) != 0 {
		t.Errorf("orphan is %v", b)
	}
}

// An owner that never existed, or whose UID belongs to an earlier object of that name, counts as
// deleted. A dependent with several owners lives as long as one of them exists.
func TestAbsentOwner(t *testing.T) {
	c := openRunning(t, "garbagecollector")
	a := c.add(t, "default", "a")
	never := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "never", UID: "00000000-0000-0000-0000-000000000001"}
	another := ownedBy(a, false)
	another.UID = "00000000-0000-0000-0000-000000000002"
	c.add(t, "default", "child", never)
	c.add(t, "default", "mistaken", another)
	c.add(t, "default", "half", never, ownedBy(a, false))
	c.gone(t, "default", "child", "mistaken")
	apitest.Eventually(t, "the absent owner's reference is dropped", func() bool {
		half := c.get(t, "default", "half")
		return half != nil && len(half.OwnerReferences) == 1 && half.OwnerReferences[0].UID == a.UID
	})
}

// Dependents whose owners were deleted while no collector ran are deleted later.
func TestCollectorStartsLater(t *testing.T) {
	c := openFixture(t)
	bootstrap(t, c, here)
	a := c.add(t, "default", "a")
	c.add(t, "default", "b", ownedBy(a, true))
	c.remove(t, "default", "a", metav1.DeletePropagationBackground)
	d := c.add(t, "default", "d")
	c.add(t, "default", "e", ownedBy(d, true))
	c.remove(t, "default", "d", metav1.DeletePropagationForeground)
	f := c.add(t, "default", "f")
	g := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "g", OwnerReferences: []metav1.OwnerReference{ownedBy(f, true)}}}
	secrets := c.Client.CoreV1().Secrets("default")
	if _, err := secrets.Create(t.Context(), g, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.remove(t, "default", "f", metav1.DeletePropagationOrphan)
	run(t, c, controllers.Config{Controllers: []string{"garbagecollector"}})
	c.gone(t, "default", "b", "d", "e", "f")
	if g, err := secrets.Get(t.Context(), "g", metav1.GetOptions{}); err != nil || len(g.OwnerReferences) != 0 {
		t.Errorf("orphan is %v, error %v", g, err)
	}
}

// The collector follows kinds that come and go while it runs.
func TestCollectorNoticesKinds(t *testing.T) {
	c := openFixture(t)
	bootstrap(t, c, here)
	secrets := c.Kinds.Lookup("", "v1", "secrets")
	c.Kinds.Replace([]*kind.Kind{secrets}, nil)
	run(t, c, controllers.Config{Controllers: []string{"garbagecollector"}})
	c.collectorKnows(t)
	for _, name := range []string{"first", "again"} {
		c.Kinds.Replace(nil, []*kind.Kind{secrets})
		owner := c.add(t, "default", name)
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{ownedBy(owner, false)}}}
		if _, err := c.Client.CoreV1().Secrets("default").Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		c.remove(t, "default", name, metav1.DeletePropagationBackground)
		apitest.Eventually(t, "the secret is gone", func() bool {
			_, err := c.Client.CoreV1().Secrets("default").Get(t.Context(), name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
		c.Kinds.Replace([]*kind.Kind{secrets}, nil)
	}
}

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
