package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
	"github.com/plinth-io/plinth/sqlstore"
)

// backWithin is how soon writes must be back after the new primary takes them. It is meant for machines on
// which other tests run; the test logs what it has measured.
const backWithin = 10 * time.Second

// TestHAPatroniSynchronous has a cluster with synchronous standbys change its primary in every way, while
// clients write and watch at two plinths. Nothing that was acknowledged is lost, and no client needs to know.
func TestHAPatroniSynchronous(t *testing.T) {
	p, a, b := servePatroni(t, 3, true)
	c := newCounters(t, a, b)
	for _, change := range []struct {
		name          string
		end, comeBack func(n int) error
	}{
		{"killed", p.Kill, func(n int) error { return p.Nodes[n].Start() }},
		{"frozen", p.Freeze, p.Thaw},
		{"switchover", func(n int) error { return p.Switchover(n, (n+1)%3) }, func(int) error { return nil }},
	} {
		c.more(t, 20)
		was, err := p.Primary()
		must(t, err)
		ready := awaitPromotion(t, p, was)
		must(t, change.end(was))
		c.expectBack(t, change.name, <-ready)
		must(t, change.comeBack(was))
		must(t, p.AwaitStandbys())
	}
	c.more(t, 20)
	c.stop()
	last, err := client(t, a).Create(t.Context(), configMap("last", "1"), metav1.CreateOptions{})
	must(t, err)
	for _, s := range c.seen {
		s.history.resume(t, client(t, b), last.ResourceVersion)
		s.history.check(t, client(t, b))
	}
	for _, w := range c.writers {
		if w.lost > 0 {
			t.Errorf("%s: %d acknowledged writes are lost", w.name, w.lost)
		}
		for reason, n := range w.refused {
			t.Logf("%s: %s, %d times", w.name, reason, n)
			if reason != metav1.StatusReasonServiceUnavailable && reason != metav1.StatusReasonTimeout {
				t.Errorf("%s: a client sees %s", w.name, reason)
			}
		}
		w.check(t, client(t, a))
	}
	for _, p := range []*process{a, b} {
		if strings.Contains(p.logged(), "set back") {
			t.Errorf("a fail-over without loss counts as a set-back")
		}
	}
}

// TestHAPatroniAsynchronous kills a primary whose standby is behind. The standby takes over, without writes that
// were acknowledged. Each plinth says so, and goes on above all that it has served.
func TestHAPatroniAsynchronous(t *testing.T) {
	p, a, b := servePatroni(t, 2, false)
	c := newCounters(t, a, b)
	c.more(t, 20)
	c.endWatches()
	was, err := p.Primary()
	must(t, err)
	c.gate.Lock() // so that what is created here is among the first that are lost, which the logs name
	must(t, p.Hold(was))
	lost, err := client(t, a).Create(t.Context(), configMap("lost", "1"), metav1.CreateOptions{})
	must(t, err)
	_, err = client(t, b).Get(t.Context(), lost.Name, metav1.GetOptions{})
	must(t, err) // b has served it, too
	c.gate.Unlock()
	c.more(t, 20)

	ready := awaitPromotion(t, p, was)
	must(t, p.Kill(was))
	c.expectBack(t, "killed", <-ready)
	for _, s := range []*process{a, b} {
		expectSetBack(t, s, lost)
	}
	must(t, p.Nodes[was].Start())
	must(t, p.AwaitStandbys())
	c.more(t, 20)
	c.stop()
	gone := 0
	for _, w := range c.writers {
		gone += w.lost
		w.check(t, client(t, a))
		w.check(t, client(t, b))
	}
	if gone == 0 {
		t.Error("the standby was not behind")
	}
	for _, s := range []*process{a, b} {
		if n := strings.Count(s.logged(), "the database was set back to an older state"); n != 1 {
			t.Errorf("it was set back %d times", n)
		}
	}
	t.Logf("%d acknowledged writes were lost", gone)
}

// expectSetBack checks that a plinth tells of the lost write, has gone on above it, and ends watches of before.
func expectSetBack(t *testing.T, p *process, lost *corev1.ConfigMap) {
	t.Helper()
	soon(t, "the log names the lost write", func() bool {
		return strings.Contains(p.logged(), "key=/registry/core/configmaps/default/"+lost.Name+" ")
	})
	events := kubernetes.NewForConfigOrDie(p.config(t)).CoreV1().Events("default")
	soon(t, "there is an event", func() bool {
		list, err := events.List(t.Context(), metav1.ListOptions{FieldSelector: "reason=DatabaseSetBack"})
		return err == nil && len(list.Items) > 0 && strings.Contains(list.Items[0].Message, "are gone")
	})
	expectReady(t, p)
	maps := client(t, p)
	if _, err := maps.Get(t.Context(), lost.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("what was lost: %v", err)
	}
	list, err := maps.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if now, err := strconv.ParseInt(list.ResourceVersion, 10, 64); err != nil || now <= revision(t, lost)+sqlstore.Slack {
		t.Errorf("goes on at %s after %s", list.ResourceVersion, lost.ResourceVersion)
	}
	w, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: lost.ResourceVersion})
	if err == nil {
		err = apierrors.FromObject((<-w.ResultChan()).Object)
		w.Stop()
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("a watch from before: %v", err)
	}
}

// servePatroni starts two plinths on a cluster.
func servePatroni(t *testing.T, nodes int, synchronous bool) (p *dbserver.Patroni, a, b *process) {
	t.Helper()
	if !strings.Contains(os.Getenv("PLINTH_TEST_HA"), "patroni") {
		t.Skip("make test-ha runs this: it needs a Patroni cluster")
	}
	p, err := dbserver.StartPatroni(nodes, synchronous)
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(p.Log())
		}
		if err := p.Close(); err != nil {
			t.Errorf("close the cluster: %v", err)
		}
	})
	primary, err := p.Primary()
	must(t, err)
	logtest.Exec(t, p.Nodes[primary].DSN(""), `CREATE DATABASE plinth`)
	logtest.Exec(t, p.Nodes[primary].DSN(""), `CREATE TABLE probe (n int)`)
	a, b = serveReplicas(t, p.DSN("plinth"))
	return p, a, b
}

// awaitPromotion tells when a node other than the one that was the primary takes a write.
func awaitPromotion(t *testing.T, p *dbserver.Patroni, was int) <-chan time.Time {
	ctx, stop := context.WithCancel(t.Context())
	ready := make(chan time.Time, len(p.Nodes))
	var asking sync.WaitGroup
	for n, node := range p.Nodes {
		if n == was {
			continue
		}
		asking.Go(func() {
			for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
				if insertProbe(ctx, node.DSN("")) == nil {
					ready <- time.Now()
					stop()
				}
			}
		})
	}
	t.Cleanup(func() { stop(); asking.Wait() })
	return ready
}

// insertProbe writes a row at a node as soon as it takes it.
func insertProbe(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	standby := true
	for standby {
		if err := conn.QueryRow(ctx, `SELECT pg_is_in_recovery()`).Scan(&standby); err != nil {
			return err
		}
		if standby {
			time.Sleep(10 * time.Millisecond)
		}
	}
	_, err = conn.Exec(ctx, `INSERT INTO probe VALUES (1)`)
	return err
}

// counters are clients that write at two plinths, and two that watch there.
type counters struct {
	writers []*counter
	seen    []*watchingClient
	stop    func()
	gate    sync.RWMutex // locked: nobody writes
}

func newCounters(t *testing.T, servers ...*process) *counters {
	t.Helper()
	c := &counters{}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, p := range servers {
		list, err := client(t, p).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		c.seen = append(c.seen, newWatchingClient(t, client(t, p), list.ResourceVersion))
	}
	for s, p := range servers {
		for i := range 3 {
			config := p.config(t)
			w := &counter{name: fmt.Sprintf("count-%d-%d", s, i), server: s, gate: &c.gate, clientset: kubernetes.NewForConfigOrDie(config), refused: map[metav1.StatusReason]int{}}
			c.writers = append(c.writers, w)
			running.Go(func() { w.run(ctx) })
		}
	}
	c.stop = sync.OnceFunc(func() {
		stop()
		running.Wait()
		c.endWatches()
	})
	t.Cleanup(c.stop)
	return c
}

func (c *counters) endWatches() {
	for _, s := range c.seen {
		s.end()
	}
}

// more waits until each writer has n acknowledged writes more.
func (c *counters) more(t *testing.T, n int) {
	t.Helper()
	for _, w := range c.writers {
		want := w.count() + n
		soon(t, fmt.Sprintf("%s has %d writes more", w.name, n), func() bool { return w.count() >= want })
	}
}

// expectBack measures how long after a moment each plinth acknowledges a write that began after it had
// no database.
func (c *counters) expectBack(t *testing.T, fault string, ready time.Time) {
	t.Helper()
	c.more(t, 1)
	back := map[int]time.Duration{}
	for _, w := range c.writers {
		after := w.firstAfter(ready).Sub(ready)
		if now, found := back[w.server]; !found || after < now {
			back[w.server] = after
		}
	}
	for server, after := range back {
		t.Logf("%s: plinth %d acknowledges a write %v after the new primary takes one", fault, server, after)
		if after > backWithin {
			t.Errorf("%s: writes are back after %v", fault, after)
		}
	}
}

// counter counts in a ConfigMap. After an error it reads what has become of its write before it goes on.
type counter struct {
	name      string
	server    int
	gate      *sync.RWMutex
	clientset *kubernetes.Clientset

	mu    sync.Mutex
	acked []time.Time // when writes were acknowledged

	// owned by its goroutine until that has ended
	object  *corev1.ConfigMap // as acknowledged, or read
	lost    int               // acknowledged writes that were not there later
	refused map[metav1.StatusReason]int
	other   error // that no status tells
}

func (w *counter) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acked)
}

// firstAfter returns when the first write after a moment was acknowledged.
func (w *counter) firstAfter(moment time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.acked {
		if at.After(moment) {
			return at
		}
	}
	return time.Now()
}

func (w *counter) run(ctx context.Context) {
	for ctx.Err() == nil {
		got, err := w.write(context.WithoutCancel(ctx))
		if err == nil {
			w.object = got
			w.mu.Lock()
			w.acked = append(w.acked, time.Now())
			w.mu.Unlock()
			continue
		}
		w.refused[apierrors.ReasonForError(err)]++
		time.Sleep(20 * time.Millisecond)
		if apierrors.IsServiceUnavailable(err) {
			continue // nothing was written
		}
		w.look(ctx)
	}
}

// write does the next write, once: client-go would wait for a second after each 503.
func (w *counter) write(ctx context.Context) (*corev1.ConfigMap, error) {
	next, got := configMap(w.name, "1"), &corev1.ConfigMap{}
	client := w.clientset.CoreV1().RESTClient()
	w.gate.RLock()
	defer w.gate.RUnlock()
	if w.object == nil {
		return got, client.Post().Namespace("default").Resource("configmaps").Body(next).MaxRetries(0).Do(ctx).Into(got)
	}
	next = w.object.DeepCopy()
	next.Data["n"] = strconv.Itoa(w.value() + 1)
	return got, client.Put().Namespace("default").Resource("configmaps").Name(w.name).Body(next).MaxRetries(0).Do(ctx).Into(got)
}

func (w *counter) value() int {
	if w.object == nil {
		return 0
	}
	n, _ := strconv.Atoi(w.object.Data["n"])
	return n
}

// look reads the object until that succeeds. It may have what was acknowledged, or one write more.
func (w *counter) look(ctx context.Context) {
	before := w.value()
	for ctx.Err() == nil {
		got, err := w.clientset.CoreV1().ConfigMaps("default").Get(ctx, w.name, metav1.GetOptions{})
		switch {
		case err == nil:
			w.object = got
		case apierrors.IsNotFound(err):
			w.object = nil
		default:
			time.Sleep(20 * time.Millisecond)
			continue
		}
		w.lost += max(0, before-w.value())
		if w.value() > before+1 {
			w.other = errors.Join(w.other, fmt.Errorf("counts %d after %d", w.value(), before))
		}
		return
	}
}

// check compares what a server has with what was acknowledged.
func (w *counter) check(t *testing.T, client typedcorev1.ConfigMapInterface) {
	t.Helper()
	if w.other != nil {
		t.Errorf("%s: %v", w.name, w.other)
	}
	got, err := client.Get(t.Context(), w.name, metav1.GetOptions{})
	must(t, err)
	if n := count(t, got); n < w.value() || n > w.value()+1 {
		t.Errorf("%s: has %d, acknowledged was %d", w.name, n, w.value())
	}
}
