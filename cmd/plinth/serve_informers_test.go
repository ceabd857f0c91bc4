package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// testInformers keeps a typed, a dynamic and a metadata informer up to date under random
// writes. In the end all must hold what the server has, and none may have seen an
// object's versions out of order.
func testInformers(t *testing.T, config *clientrest.Config, ns string) {
	client := kubernetes.NewForConfigOrDie(config)
	resource := corev1.SchemeGroupVersion.WithResource("configmaps")
	typed := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(ns))
	anything := dynamicinformer.NewFilteredDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(config), 0, ns, nil)
	partial := metadatainformer.NewFilteredSharedInformerFactory(metadata.NewForConfigOrDie(config), 0, ns, nil)
	all := map[string]cache.SharedIndexInformer{
		"typed":    typed.Core().V1().ConfigMaps().Informer(),
		"dynamic":  anything.ForResource(resource).Informer(),
		"metadata": partial.ForResource(resource).Informer(),
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for name, informer := range all {
		_, err := informer.AddEventHandler(inOrder(t, name))
		must(t, err)
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	writeAtRandom(t, client.CoreV1().ConfigMaps(ns))
	list, err := client.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	want := versions{}
	for _, c := range list.Items {
		want[c.Name] = c.ResourceVersion
	}
	for name, informer := range all {
		var diff string
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if diff = cmp.Diff(want, held(informer.GetStore())); diff == "" {
				break
			}
		}
		if diff != "" {
			t.Errorf("the %s informer differs from the server (-server +informer):\n%s", name, diff)
		}
	}
}

// held returns the versions of the objects in an informer's store, by name.
func held(store cache.Store) versions {
	v := versions{}
	for _, o := range store.List() {
		m, err := meta.Accessor(o)
		if err != nil {
			panic(err) // not an object
		}
		v[m.GetName()] = m.GetResourceVersion()
	}
	return v
}

// inOrder fails the test if an object's version does not rise.
func inOrder(t *testing.T, informer string) cache.ResourceEventHandlerFuncs {
	last := map[string]int64{}
	see := func(o any) {
		m, err := meta.Accessor(o)
		if err != nil {
			return // cache.DeletedFinalStateUnknown: its version is old
		}
		version, err := strconv.ParseInt(m.GetResourceVersion(), 10, 64)
		if err != nil || version <= last[m.GetName()] {
			t.Errorf("%s informer: %s at %s after %d", informer, m.GetName(), m.GetResourceVersion(), last[m.GetName()])
		}
		last[m.GetName()] = version
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, o any) { see(o) }, DeleteFunc: see}
}

func writeAtRandom(t *testing.T, client typedcorev1.ConfigMapInterface) {
	var writers sync.WaitGroup
	for w := range uint64(4) {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(1, w))
			for i := range 60 {
				name := fmt.Sprintf("c-%d", random.IntN(12))
				var err error
				switch random.IntN(3) {
				case 0:
					_, err = client.Create(t.Context(), configMap(name, "0"), metav1.CreateOptions{})
				case 1:
					patch := fmt.Appendf(nil, `{"data":{"n":"%d-%d"}}`, w, i)
					_, err = client.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
				case 2:
					err = client.Delete(t.Context(), name, metav1.DeleteOptions{})
				}
				if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
}

// TestReflectorExpired cuts a Reflector off until the history has moved past it. It must
// be told so, begin anew and go on.
func TestReflectorExpired(t *testing.T) {
	aloneAndShared(t, func(t *testing.T, dsn string) {
		config := serveFor(t, t.TempDir()+"/data", dsn, "--history=100ms", "--controllers=").config(t)
		client := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
		_, err := client.Create(t.Context(), configMap("before", "1"), metav1.CreateOptions{})
		must(t, err)

		line := &cutLine{client: client}
		store := cache.NewStore(cache.MetaNamespaceKeyFunc)
		reflector := cache.NewReflector(line.listWatch(t.Context()), &corev1.ConfigMap{}, store, 0)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { reflector.RunWithContext(ctx) })
		defer running.Wait()
		defer cancel()
		soon(t, "the reflector watches", func() bool { return line.watching() })
		_, err = client.Create(t.Context(), configMap("during", "1"), metav1.CreateOptions{})
		must(t, err)
		soon(t, "the reflector gets an event", func() bool { return held(store)["during"] != "" })

		line.cut()
		seen := reflector.LastSyncResourceVersion()
		must(t, client.Delete(t.Context(), "before", metav1.DeleteOptions{}))
		soon(t, "the history moves past the reflector", func() bool { return isExpired(t, client, seen) })
		line.mend()
		soon(t, "the reflector is told that it is too late", func() bool { return line.expired.Load() > 0 })
		_, err = client.Create(t.Context(), configMap("after", "1"), metav1.CreateOptions{})
		must(t, err)
		soon(t, "the reflector has the object made after", func() bool {
			have := held(store)
			return have["after"] != "" && have["before"] == ""
		})
		if n := line.begun.Load(); n < 2 {
			t.Errorf("it has begun %d times", n)
		}
	})
}

// isExpired writes something, because only writes move the history, and says whether a
// watch from the revision is refused.
func isExpired(t *testing.T, client typedcorev1.ConfigMapInterface, revision string) bool {
	_, err := client.Patch(t.Context(), "churn", types.MergePatchType, fmt.Appendf(nil, `{"data":{"n":"%d"}}`, time.Now().UnixNano()), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = client.Create(t.Context(), configMap("churn", ""), metav1.CreateOptions{})
	}
	must(t, err)
	timeout := int64(1)
	w, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: revision, TimeoutSeconds: &timeout})
	if err != nil {
		return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
	}
	defer w.Stop()
	event := <-w.ResultChan()
	return event.Type == watch.Error && apierrors.IsResourceExpired(apierrors.FromObject(event.Object))
}

// cutLine is a connection to the server that can be cut and mended. A watch that is cut
// ends as if its time were up: a Reflector then resumes it, whereas after a broken one it
// lists anew.
type cutLine struct {
	client         typedcorev1.ConfigMapInterface
	begun, expired atomic.Int64 // begun: by a list, or by a watch that begins with one

	mu      sync.Mutex
	isCut   bool
	current watch.Interface
	end     chan struct{} // ends the current watch
}

func (l *cutLine) watching() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current != nil
}

func (l *cutLine) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = true
	close(l.end)
	l.current.Stop()
}

func (l *cutLine) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = false
}

func (l *cutLine) listWatch(ctx context.Context) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
			l.begun.Add(1)
			return l.client.List(ctx, o)
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.isCut {
				return nil, syscall.ECONNREFUSED
			}
			w, err := l.client.Watch(ctx, o)
			if err != nil {
				l.note(err)
				return nil, err
			}
			if ptr.Deref(o.SendInitialEvents, false) {
				l.begun.Add(1)
			}
			l.current, l.end = w, make(chan struct{})
			return l.forward(w, l.end), nil
		},
	}
}

// forward passes a watch on until it ends or the line is cut.
func (l *cutLine) forward(w watch.Interface, end <-chan struct{}) watch.Interface {
	out := make(chan watch.Event)
	proxy := watch.NewProxyWatcher(out)
	go func() {
		defer close(out)
		defer w.Stop()
		for {
			select {
			case event, ok := <-w.ResultChan():
				if !ok {
					return
				}
				if event.Type == watch.Error {
					l.note(apierrors.FromObject(event.Object))
				}
				select {
				case out <- event:
				case <-proxy.StopChan():
					return
				}
			case <-end:
				return
			case <-proxy.StopChan():
				return
			}
		}
	}()
	return proxy
}

func (l *cutLine) note(err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		l.expired.Add(1)
	}
}
