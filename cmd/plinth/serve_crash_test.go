package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// TestKill kills the server with SIGKILL while clients write and watch. After its restart
// on the same database all that was acknowledged must be there, and a watch resumed where
// its client was must show the rest of the history.
func TestKill(t *testing.T) {
	forEach(t, func(t *testing.T, dsn string) {
		dir := t.TempDir() + "/data"
		p := serveFor(t, dir, dsn, "--controllers=")
		before := client(t, p)
		list, err := before.List(t.Context(), metav1.ListOptions{})
		must(t, err)
		h := newHistory(list.ResourceVersion)
		w, err := before.Watch(t.Context(), metav1.ListOptions{ResourceVersion: h.last})
		must(t, err)

		l := newLoad(8)
		l.start(t.Context(), before)
		for len(h.counts) < 8 || h.events < 200 {
			h.add(t, nextEvent(t, w))
		}
		p.kill()
		// What was sent before the end may still be read.
		for event := range w.ResultChan() {
			if event.Type != watch.Error {
				h.add(t, event)
			}
		}
		l.wait()

		after := client(t, serveFor(t, dir, dsn, "--controllers="))
		l.check(t, after)
		fresh, err := after.Create(t.Context(), configMap("fresh", "1"), metav1.CreateOptions{})
		must(t, err)
		if got := revision(t, fresh); got <= l.highest() || got <= h.lastRevision(t) {
			t.Errorf("revision %d after %d was acknowledged and %s seen", got, l.highest(), h.last)
		}
		h.resume(t, after, fresh.ResourceVersion)
		h.check(t, after)
	})
}

func client(t testing.TB, p *process) typedcorev1.ConfigMapInterface {
	return kubernetes.NewForConfigOrDie(p.config(t)).CoreV1().ConfigMaps("default")
}

func revision(t testing.TB, c *corev1.ConfigMap) int64 {
	t.Helper()
	n, err := strconv.ParseInt(c.ResourceVersion, 10, 64)
	must(t, err)
	return n
}

func count(t testing.TB, c *corev1.ConfigMap) int {
	t.Helper()
	n, err := strconv.Atoi(c.Data["n"])
	must(t, err)
	return n
}

// load is a number of writers, each with an object of its own, in which it counts.
type load struct {
	writers []*writer
	running sync.WaitGroup
}

// writer's fields belong to its goroutine until load.wait returns.
type writer struct {
	name    string
	acked   *corev1.ConfigMap // last that was acknowledged; nil: none
	unknown bool              // whether the write that ended it may have been done
	err     error             // that ended it
}

func newLoad(writers int) *load {
	l := &load{}
	for i := range writers {
		l.writers = append(l.writers, &writer{name: fmt.Sprintf("load-%d", i)})
	}
	return l
}

// start makes each writer write until a write fails.
func (l *load) start(ctx context.Context, client typedcorev1.ConfigMapInterface) {
	for _, w := range l.writers {
		l.running.Go(func() { w.run(ctx, client) })
	}
}

func (l *load) wait() { l.running.Wait() }

func (w *writer) run(ctx context.Context, client typedcorev1.ConfigMapInterface) {
	for w.write(ctx, client) {
	}
}

// write does one write, and says whether it was acknowledged.
func (w *writer) write(ctx context.Context, client typedcorev1.ConfigMapInterface) bool {
	var got *corev1.ConfigMap
	if w.acked == nil {
		got, w.err = client.Create(ctx, configMap(w.name, "1"), metav1.CreateOptions{})
	} else {
		next := w.acked.DeepCopy()
		n, _ := strconv.Atoi(next.Data["n"])
		next.Data["n"] = strconv.Itoa(n + 1)
		got, w.err = client.Update(ctx, next, metav1.UpdateOptions{})
	}
	if w.err != nil {
		// 503 says that nothing was written. After any other error the outcome is unknown.
		w.unknown = !apierrors.IsServiceUnavailable(w.err)
		return false
	}
	w.acked = got
	return true
}

func (w *writer) ackedCount(t testing.TB) int {
	if w.acked == nil {
		return 0
	}
	return count(t, w.acked)
}

func (l *load) highest() int64 {
	var highest int64
	for _, w := range l.writers {
		if w.acked != nil {
			n, _ := strconv.ParseInt(w.acked.ResourceVersion, 10, 64)
			highest = max(highest, n)
		}
	}
	return highest
}

// check compares what the server has with what it acknowledged: the same, or one write
// more where the outcome was not known.
func (l *load) check(t *testing.T, client typedcorev1.ConfigMapInterface) {
	t.Helper()
	for _, w := range l.writers {
		got, err := client.Get(t.Context(), w.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) && w.acked == nil {
			continue
		}
		must(t, err)
		switch acked, now := w.ackedCount(t), count(t, got); {
		case now == acked && got.ResourceVersion == w.acked.ResourceVersion:
		case now == acked+1 && w.unknown:
		default:
			t.Errorf("%s: has %d at %s; acknowledged were %d (%+v), then %v", w.name, now, got.ResourceVersion, acked, w.acked, w.err)
		}
	}
}

// history is what one client has seen through its watches.
type history struct {
	last   string         // resourceVersion of the last event
	counts map[string]int // by object
	events int
}

func newHistory(from string) *history { return &history{last: from, counts: map[string]int{}} }

// add checks that the event is the next of its object and later than all before.
func (h *history) add(t *testing.T, event watch.Event) {
	t.Helper()
	c, ok := event.Object.(*corev1.ConfigMap)
	if !ok {
		t.Fatalf("event %+v", event)
	}
	if got := revision(t, c); got <= h.lastRevision(t) {
		t.Errorf("event at %d after %s", got, h.last)
	}
	if got := count(t, c); got != h.counts[c.Name]+1 {
		t.Errorf("%s: event %d after %d", c.Name, got, h.counts[c.Name])
	}
	h.counts[c.Name]++
	h.last = c.ResourceVersion
	h.events++
}

func (h *history) lastRevision(t testing.TB) int64 {
	n, err := strconv.ParseInt(h.last, 10, 64)
	must(t, err)
	return n
}

// resume watches on from the last event until that of the given revision.
func (h *history) resume(t *testing.T, client typedcorev1.ConfigMapInterface, until string) {
	t.Helper()
	w, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: h.last})
	must(t, err)
	defer w.Stop()
	for h.last != until {
		h.add(t, nextEvent(t, w))
	}
}

// check compares the end of the history with the objects that there are.
func (h *history) check(t *testing.T, client typedcorev1.ConfigMapInterface) {
	t.Helper()
	list, err := client.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, c := range list.Items {
		if n, seen := h.counts[c.Name]; seen && n != count(t, &c) {
			t.Errorf("%s: has %d, %d were seen", c.Name, count(t, &c), n)
		}
	}
	if len(list.Items) < len(h.counts) {
		t.Errorf("%d objects, %d were seen", len(list.Items), len(h.counts))
	}
}

// patiently retries a write until the server accepts it.
func patiently(t *testing.T, what string, write func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err = write(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}
