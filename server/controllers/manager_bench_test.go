package controllers_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/controllers"
)

// BenchmarkIdle measures controllers that have nothing to do: CPU time, and the live heap,
// goroutines and stacks beyond those of a server without controllers.
func BenchmarkIdle(b *testing.B) {
	for _, objects := range []int{0, 10_000} {
		b.Run(fmt.Sprintf("objects=%d", objects), func(b *testing.B) {
			c := openFixture(b)
			bootstrap(b, c, here)
			c.fill(b, objects)
			var before, after runtime.MemStats
			settled(&before)
			goroutines := runtime.NumGoroutine()
			for b.Loop() {
				stop := run(b, c, controllers.Config{})
				time.Sleep(2 * time.Second)
				begun := cpuTime(b)
				time.Sleep(2 * time.Second)
				b.ReportMetric(float64((cpuTime(b)-begun).Microseconds())/2000, "cpu-ms/s")
				settled(&after)
				b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/1e6, "heap-MB")
				b.ReportMetric(float64(int64(after.StackInuse)-int64(before.StackInuse))/1e6, "stack-MB")
				b.ReportMetric(float64(runtime.NumGoroutine()-goroutines), "goroutines")
				stop()
			}
		})
	}
}

func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func settled(m *runtime.MemStats) {
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(m)
}

// fill creates ConfigMaps of 1 KiB.
func (c *fixture) fill(t testing.TB, n int) {
	t.Helper()
	data := map[string]string{"key": fmt.Sprintf("%01024d", 0)}
	var group errgroup.Group
	group.SetLimit(64)
	for i := range n {
		group.Go(func() error {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("cm-%d", i)}, Data: data}
			_, err := c.Client.CoreV1().ConfigMaps("default").Create(t.Context(), cm, metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkNamespaceDeletion measures the time from the deletion of a namespace with ten objects
// until the namespace is gone.
func BenchmarkNamespaceDeletion(b *testing.B) {
	c := openRunning(b)
	namespaces := c.Client.CoreV1().Namespaces()
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		name := fmt.Sprintf("ns-%d", i)
		c.addNamespace(b, name)
		for j := range 10 {
			c.add(b, name, fmt.Sprintf("cm-%d", j))
		}
		b.StartTimer()
		if err := namespaces.Delete(b.Context(), name, metav1.DeleteOptions{}); err != nil {
			b.Fatal(err)
		}
		apitest.Eventually(b, "the namespace is gone", func() bool {
			_, err := namespaces.Get(b.Context(), name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	}
}

// BenchmarkCascade measures the time from the background deletion of an owner until its hundred
// dependents are gone.
func BenchmarkCascade(b *testing.B) {
	c := openRunning(b, "garbagecollector")
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		owner := c.add(b, "default", fmt.Sprintf("owner-%d", i))
		for j := range 100 {
			c.add(b, "default", fmt.Sprintf("owned-%d-%d", i, j), ownedBy(owner, false))
		}
		b.StartTimer()
		c.remove(b, "default", owner.Name, metav1.DeletePropagationBackground)
		apitest.Eventually(b, "the dependents are gone", func() bool {
			list, err := c.Client.CoreV1().ConfigMaps("default").List(b.Context(), metav1.ListOptions{})
			if err != nil {
				b.Fatal(err)
			}
			return len(list.Items) == 0
		})
	}
}
