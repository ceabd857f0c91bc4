package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/bench/torture"
	"github.com/plinth-io/plinth/dialects/logtest"
)

// serveReplicas starts two plinths with one authority on a database.
func serveReplicas(t testing.TB, dsn string, flags ...string) (a, b *process) {
	t.Helper()
	dir := t.TempDir()
	a = serveFor(t, dir+"/a", dsn, flags...)
	must(t, torture.CopyAuthority(dir+"/a", dir+"/b"))
	return a, serveFor(t, dir+"/b", dsn, flags...)
}

func clientFrom(config *clientrest.Config) typedcorev1.ConfigMapInterface {
	return kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
}

// runUntil writes until stop has ended, and then finishes its last write.
func (w *writer) runUntil(stop, ctx context.Context, client typedcorev1.ConfigMapInterface) {
	for stop.Err() == nil && w.write(ctx, client) {
	}
}

// watchInTurn has one client's watch go from one plinth to the next, and sees some events at each.
func watchInTurn(t *testing.T, h *history, at []typedcorev1.ConfigMapInterface, moves, events int) {
	t.Helper()
	for move := range moves {
		w, err := at[move%len(at)].Watch(t.Context(), metav1.ListOptions{ResourceVersion: h.last})
		must(t, err)
		for range events {
			h.add(t, nextEvent(t, w))
		}
		w.Stop()
	}
}

// TestReplicasWatch has one client's watch go from one plinth to the other again and again while others
// write at both: nothing is missing, and nothing comes twice.
func TestReplicasWatch(t *testing.T) {
	t.Parallel()
	logtest.EachShared(t, func(t *testing.T, d logtest.Dialect) {
		a, b := serveReplicas(t, d.Fresh(t), "--controllers=none")
		at := []typedcorev1.ConfigMapInterface{client(t, a), client(t, b)}
		list, err := at[0].List(t.Context(), metav1.ListOptions{})
		must(t, err)
		h := newHistory(list.ResourceVersion)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		l := newLoad(4)
		for i, w := range l.writers {
			l.running.Go(func() { w.runUntil(ctx, t.Context(), at[i%2]) })
		}
		const moves, events = 20, 15
		watchInTurn(t, h, at, moves, events)
		stop()
		l.wait()
		last, err := at[1].Create(t.Context(), configMap("last", "1"), metav1.CreateOptions{})
		must(t, err)
		h.resume(t, at[moves%2], last.ResourceVersion)
		h.check(t, at[0])
		h.check(t, at[1])
	})
}

// TestReplicasRoll restarts two plinths behind a load balancer, one after the other, under load: no
// request fails, and a watch goes on. When one is killed instead, the next try of a request is served by
// the other.
func TestReplicasRoll(t *testing.T) {
	t.Parallel()
	logtest.EachShared(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		flags := []string{"--controllers=none"}
		a, b := serveReplicas(t, dsn, flags...)
		_, config := balance(t, a, b)
		through := clientFrom(config)
		list, err := through.List(t.Context(), metav1.ListOptions{})
		must(t, err)
		seen := newWatchingClient(t, through, list.ResourceVersion)
		stop, l := startApart(t, config, 6)
		for _, p := range []*process{a, b} {
			seen.more(t, 50)
			must(t, p.stop())
			seen.more(t, 50)
			*p = *serveFor(t, p.dir, dsn, append(flags, "--listen="+p.address())...)
		}
		seen.more(t, 50)
		stop()
		l.finish(t, through)
		seen.end()

		// Whatever plinth this client is connected to, it survives the end of one of them.
		_, err = through.Get(t.Context(), "load-0", metav1.GetOptions{})
		must(t, err)
		a.kill()
		begun := time.Now()
		if _, err := through.Get(t.Context(), "load-0", metav1.GetOptions{}); err != nil {
			_, err = through.Get(t.Context(), "load-0", metav1.GetOptions{})
			must(t, err)
		}
		t.Logf("after a kill a client was served within %v", time.Since(begun))
	})
}

// watchingClient lists and watches as client-go's informers do: after the end of a watch it watches on from the
// last version. It checks that it has seen every change of every object.
type watchingClient struct {
	history *history
	stop    context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	events int
}

func newWatchingClient(t *testing.T, client typedcorev1.ConfigMapInterface, from string) *watchingClient {
	ctx, stop := context.WithCancel(t.Context())
	f := &watchingClient{history: newHistory(from), stop: stop}
	f.running.Go(func() {
		for ctx.Err() == nil {
			w, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: f.history.last})
			if err != nil {
				if ctx.Err() == nil && !apierrors.IsServiceUnavailable(err) && !retriable(err) {
					t.Errorf("watch: %v", err)
					return
				}
				continue
			}
			for event := range w.ResultChan() {
				if ctx.Err() != nil {
					break
				}
				f.history.add(t, event)
				f.mu.Lock()
				f.events = f.history.events
				f.mu.Unlock()
			}
			w.Stop()
		}
	})
	t.Cleanup(f.end)
	return f
}

// retriable says whether an error is that of a connection, which reflectors try again.
func retriable(err error) bool {
	for _, text := range []string{"EOF", "connection re", "GOAWAY", "http2:"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// more waits for n events more.
func (f *watchingClient) more(t *testing.T, n int) {
	t.Helper()
	count := func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.events
	}
	want := count() + n
	soon(t, fmt.Sprintf("%d events", n), func() bool { return count() >= want })
}

func (f *watchingClient) end() {
	f.stop()
	f.running.Wait()
}

// TestReplicasStopped stops the plinth that runs the controllers for longer than its lease. The other one
// runs them then, and the first one, which does not know that it was stopped, lets it.
func TestReplicasStopped(t *testing.T) {
	t.Parallel()
	logtest.EachShared(t, func(t *testing.T, d logtest.Dialect) {
		a, b := serveReplicas(t, d.Fresh(t), "--controllers=serviceaccount")
		const runs, ended = "this server runs the controllers controllers=", "this server runs the controllers no more"
		first, second := a, b
		soon(t, "one runs the controllers", func() bool {
			if strings.Contains(b.logged(), runs) {
				first, second = b, a
			}
			return strings.Contains(first.logged(), runs)
		})
		must(t, first.cmd.Process.Signal(syscall.SIGSTOP))
		thawed := false
		defer func() {
			if !thawed {
				_ = first.cmd.Process.Signal(syscall.SIGCONT)
			}
		}()
		soon(t, "the other one runs them", func() bool { return strings.Contains(second.logged(), runs) })
		createNamespace(t, second.config(t), "meanwhile")
		expectAccount(t, second, "meanwhile")
		must(t, first.cmd.Process.Signal(syscall.SIGCONT))
		thawed = true
		soon(t, "the first has noticed", func() bool { return strings.Contains(first.logged(), ended) })
		createNamespace(t, first.config(t), "later")
		expectAccount(t, first, "later")
		if strings.Contains(second.logged(), ended) || strings.Count(first.logged(), runs) != 1 {
			t.Error("the controllers have changed once more")
		}
		expectReady(t, first)
	})
}

func expectAccount(t *testing.T, p *process, namespace string) {
	t.Helper()
	accounts := kubernetes.NewForConfigOrDie(p.config(t)).CoreV1().ServiceAccounts(namespace)
	soon(t, "the service account of "+namespace, func() bool {
		_, err := accounts.Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
}

// TestReplicasUpgrade gives the schema a newer version under two plinths and their clients, as a newer plinth
// does: no request fails, and a watch goes on. A plinth of the older version that starts refuses.
func TestReplicasUpgrade(t *testing.T) {
	t.Parallel()
	logtest.EachShared(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		a, b := serveReplicas(t, dsn, "--controllers=none")
		_, config := balance(t, a, b)
		through := clientFrom(config)
		list, err := through.List(t.Context(), metav1.ListOptions{})
		must(t, err)
		seen := newWatchingClient(t, through, list.ResourceVersion)
		stop, l := startApart(t, config, 4)
		seen.more(t, 30)
		for _, statement := range upgrade[d.Name] {
			logtest.Exec(t, dsn, statement)
			seen.more(t, 10)
		}
		logtest.Exec(t, dsn, `UPDATE schema_migrations SET version = version + 1`)
		seen.more(t, 30)
		if _, err := launch(t.TempDir()+"/data", dsn); err == nil || !strings.Contains(err.Error(), "schema is newer than this program") {
			t.Errorf("a start on a newer schema: %v", err)
		}
		seen.more(t, 10)
		stop()
		l.finish(t, through)
		seen.end()
		logtest.Exec(t, dsn, `UPDATE schema_migrations SET version = version - 1`)
	})
}

// upgrade is what a migration may do to tables in use, by dialect.
var upgrade = map[string][]string{
	"postgres": {`ALTER TABLE log ADD COLUMN later bigint; CREATE INDEX log_later ON log (later)`, `CREATE TABLE newer (id bigint PRIMARY KEY)`},
	"mariadb":  {`ALTER TABLE log ADD COLUMN later BIGINT, ADD INDEX log_later (later)`, `CREATE TABLE newer (id BIGINT PRIMARY KEY)`},
}

// startApart starts writers that have a connection each. After stop they finish their last writes.
func startApart(t *testing.T, config *clientrest.Config, writers int) (stop context.CancelFunc, l *load) {
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	l = newLoad(writers)
	for _, w := range l.writers {
		own := clientrest.CopyConfig(config)
		own.Dial = (&net.Dialer{}).DialContext
		l.running.Go(func() { w.runUntil(ctx, t.Context(), clientFrom(own)) })
	}
	return stop, l
}

// finish waits for the writers, none of whose writes may have failed.
func (l *load) finish(t *testing.T, client typedcorev1.ConfigMapInterface) {
	t.Helper()
	l.wait()
	for _, w := range l.writers {
		if w.err != nil {
			t.Errorf("a request failed: %v", w.err)
		}
	}
	l.check(t, client)
}

// TestReplicasExpire: an event that is too old is deleted once, whichever plinth does it.
func TestReplicasExpire(t *testing.T) {
	t.Parallel()
	logtest.EachShared(t, func(t *testing.T, d logtest.Dialect) {
		a, b := serveReplicas(t, d.Fresh(t), "--controllers=none", "--event-ttl=1s")
		clients := []*kubernetes.Clientset{kubernetes.NewForConfigOrDie(a.config(t)), kubernetes.NewForConfigOrDie(b.config(t))}
		w, err := clients[0].CoreV1().Events("default").Watch(t.Context(), metav1.ListOptions{FieldSelector: "reason=Test"})
		must(t, err)
		defer w.Stop()
		const events = 20
		for i := range events {
			event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e-" + strconv.Itoa(i)}, Reason: "Test", InvolvedObject: corev1.ObjectReference{Namespace: "default"}}
			_, err := clients[i%2].CoreV1().Events("default").Create(t.Context(), event, metav1.CreateOptions{})
			must(t, err)
		}
		deleted := map[string]int{}
		for len(deleted) < events {
			if event := nextEvent(t, w); event.Type == watch.Deleted {
				deleted[event.Object.(*corev1.Event).Name]++
			}
		}
		for name, n := range deleted {
			if n != 1 {
				t.Errorf("%s was deleted %d times", name, n)
			}
		}
	})
}
