package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/pager"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/retry"
)

// TestClients has one plinth serve client-go in all its forms and encodings at once, each
// in a namespace of its own.
func TestClients(t *testing.T) {
	tests := map[string]func(*testing.T, *clientrest.Config, string){
		"verbs":    testVerbs,
		"crud":     testCRUD,
		"informer": testInformers,
		"pager":    testPager,
		"conflict": testConflicts,
		"resume":   testRetryWatcher,
		"election": testElection,
	}
	aloneAndShared(t, func(t *testing.T, dsn string) {
		config := serveFor(t, t.TempDir()+"/data", dsn).config(t)
		for name, test := range tests {
			for _, encoding := range encodings {
				name := name + "-" + encoding
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					createNamespace(t, config, name)
					test(t, encoded(t, config, encoding), name)
				})
			}
		}
	})
}

func createNamespace(t *testing.T, config *clientrest.Config, name string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{})
	must(t, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// soon waits until condition holds. It fails with what describe says otherwise.
func soon(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func configMap(name, n string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"n": n}}
}

// testCRUD changes one object through a typed, a dynamic and a metadata client in turn.
func testCRUD(t *testing.T, config *clientrest.Config, ns string) {
	ctx := t.Context()
	typed := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps(ns)
	resource := corev1.SchemeGroupVersion.WithResource("configmaps")
	anything := dynamic.NewForConfigOrDie(config).Resource(resource).Namespace(ns)
	meta := metadata.NewForConfigOrDie(config).Resource(resource).Namespace(ns)

	created, err := typed.Create(ctx, configMap("a", "1"), metav1.CreateOptions{})
	must(t, err)
	object, err := anything.Get(ctx, "a", metav1.GetOptions{})
	must(t, err)
	if object.GetResourceVersion() != created.ResourceVersion || object.GetUID() != created.UID {
		t.Errorf("dynamic client reads %v, typed client wrote %v", object, created)
	}
	must(t, unstructured.SetNestedField(object.Object, "2", "data", "n"))
	object, err = anything.Update(ctx, object, metav1.UpdateOptions{})
	must(t, err)
	if _, err := typed.Update(ctx, created, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("update of an old version: %v", err)
	}
	patched, err := meta.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"l":"x"}}}`), metav1.PatchOptions{})
	must(t, err)
	if patched.Labels["l"] != "x" || patched.ResourceVersion == object.GetResourceVersion() {
		t.Errorf("metadata client patched %+v", patched.ObjectMeta)
	}
	list, err := meta.List(ctx, metav1.ListOptions{LabelSelector: "l=x"})
	must(t, err)
	if len(list.Items) != 1 || list.Items[0].Name != "a" {
		t.Errorf("metadata client lists %+v", list.Items)
	}
	read, err := typed.Get(ctx, "a", metav1.GetOptions{})
	must(t, err)
	if read.Data["n"] != "2" || read.Labels["l"] != "x" || read.ResourceVersion != patched.ResourceVersion {
		t.Errorf("typed client reads %+v", read)
	}
	must(t, meta.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &read.UID}}))
	if _, err := anything.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get after delete: %v", err)
	}
	must(t, typed.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "l=x"}))
}

// versions are resourceVersions by name.
type versions map[string]string

// testPager reads a list in small pages while others write; the pages must be the list
// that was there at first.
func testPager(t *testing.T, config *clientrest.Config, ns string) {
	client := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps(ns)
	write := func(prefix string) {
		for i := range 30 {
			_, err := client.Create(t.Context(), configMap(fmt.Sprintf("%s-%02d", prefix, i), "1"), metav1.CreateOptions{})
			must(t, err)
		}
	}
	write("b")
	list, err := client.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	want := namesOf(list.Items)

	var got []string
	p := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		page, err := client.List(ctx, o)
		if err == nil && o.Continue == "" {
			write("a")
			must(t, client.Delete(ctx, "b-20", metav1.DeleteOptions{}))
		}
		return page, err
	})
	p.PageSize = 7
	must(t, p.EachListItem(t.Context(), metav1.ListOptions{}, func(o runtime.Object) error {
		got = append(got, namesOf([]corev1.ConfigMap{*o.(*corev1.ConfigMap)})...)
		return nil
	}))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pages differ from the list (-list +pages):\n%s", diff)
	}
}

// namesOf leaves out what a controller puts into each namespace, at any time.
func namesOf(items []corev1.ConfigMap) []string {
	var names []string
	for _, c := range items {
		if c.Name != "kube-root-ca.crt" {
			names = append(names, c.Name)
		}
	}
	return names
}

// testConflicts has 20 writers count to 100 in one object. No writer may undo the update of
// another.
func testConflicts(t *testing.T, config *clientrest.Config, ns string) {
	client := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps(ns)
	_, err := client.Create(t.Context(), configMap("counter", "0"), metav1.CreateOptions{})
	must(t, err)
	// More patient than retry.DefaultRetry: here everybody conflicts with everybody.
	backoff := wait.Backoff{Steps: 500, Duration: 5 * time.Millisecond, Jitter: 1}
	var writers sync.WaitGroup
	for range 20 {
		writers.Go(func() {
			for range 5 {
				if err := retry.RetryOnConflict(backoff, func() error { return increment(t.Context(), client) }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	got, err := client.Get(t.Context(), "counter", metav1.GetOptions{})
	must(t, err)
	if got.Data["n"] != "100" {
		t.Errorf("counted to %s", got.Data["n"])
	}
}

func increment(ctx context.Context, client typedcorev1.ConfigMapInterface) error {
	c, err := client.Get(ctx, "counter", metav1.GetOptions{})
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(c.Data["n"])
	if err != nil {
		return err
	}
	c.Data["n"] = strconv.Itoa(n + 1)
	_, err = client.Update(ctx, c, metav1.UpdateOptions{})
	return err
}

// testRetryWatcher follows a list through watches that the server ends every second.
func testRetryWatcher(t *testing.T, config *clientrest.Config, ns string) {
	client := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps(ns)
	list, err := client.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	starts := 0
	w, err := watchtools.NewRetryWatcherWithContext(t.Context(), list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			starts++
			o.TimeoutSeconds = new(int64)
			*o.TimeoutSeconds = 1
			return client.Watch(ctx, o)
		},
	})
	must(t, err)
	var want []string
	var writer sync.WaitGroup
	for i := range 50 {
		want = append(want, fmt.Sprintf("w-%02d", i))
	}
	writer.Go(func() {
		for _, name := range want {
			if _, err := client.Create(t.Context(), configMap(name, "1"), metav1.CreateOptions{}); err != nil {
				t.Error(err)
			}
			time.Sleep(50 * time.Millisecond) // so that it takes longer than one watch
		}
	})
	var got []string
	for len(got) < len(want) {
		event := nextEvent(t, w)
		if event.Type != watch.Bookmark {
			got = append(got, namesOf([]corev1.ConfigMap{*event.Object.(*corev1.ConfigMap)})...)
		}
	}
	writer.Wait()
	w.Stop()
	<-w.Done()
	if diff := cmp.Diff(want, got); diff != "" || starts < 2 {
		t.Errorf("%d watches saw (-written +seen):\n%s", starts, diff)
	}
}

func nextEvent(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case event, ok := <-w.ResultChan():
		if !ok || event.Type == watch.Error {
			t.Fatalf("the watch ended with %v", event.Object)
		}
		return event
	case <-time.After(patience):
		t.Fatal("no event came")
		panic("unreachable")
	}
}

// testElection has two candidates for one Lease. The leader dies without giving it back;
// the other takes it over when it has run out, and not before.
func testElection(t *testing.T, config *clientrest.Config, ns string) {
	client := kubernetes.NewForConfigOrDie(config)
	elected := make(chan string, 2)
	candidate := func(name string) (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: ns, Name: "leader"},
				Client:     client.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: name},
			},
			LeaseDuration: 12 * time.Second,
			RenewDeadline: 10 * time.Second,
			RetryPeriod:   200 * time.Millisecond,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { elected <- name },
				OnStoppedLeading: func() {},
			},
		})
		must(t, err)
		running.Go(func() { e.Run(ctx) })
		return func() { cancel(); running.Wait() }
	}
	kill := candidate("first")
	if name := nextLeader(t, elected); name != "first" {
		t.Fatalf("%s leads", name)
	}
	defer candidate("second")()
	held, err := client.CoordinationV1().Leases(ns).Get(t.Context(), "leader", metav1.GetOptions{})
	must(t, err)
	kill()
	if name := nextLeader(t, elected); name != "second" {
		t.Fatalf("%s leads", name)
	}
	taken, err := client.CoordinationV1().Leases(ns).Get(t.Context(), "leader", metav1.GetOptions{})
	must(t, err)
	if *held.Spec.HolderIdentity != "first" || *taken.Spec.HolderIdentity != "second" || *taken.Spec.LeaseTransitions != *held.Spec.LeaseTransitions+1 {
		t.Errorf("the lease went from %+v to %+v", held.Spec, taken.Spec)
	}
	if wait := taken.Spec.AcquireTime.Sub(held.Spec.RenewTime.Time); wait < 10*time.Second {
		t.Errorf("the lease was taken after %v", wait)
	}
}

func nextLeader(t *testing.T, elected <-chan string) string {
	t.Helper()
	select {
	case name := <-elected:
		return name
	case <-time.After(patience):
		t.Fatal("nobody leads")
		return ""
	}
}
