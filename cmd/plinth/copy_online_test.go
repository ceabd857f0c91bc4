package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// TestCopyOnline copies from a server that is written to. Afterwards it refuses writes and goes on
// reading, does not start again, and the target serves all that was acknowledged. Then the source is
// taken back.
func TestCopyOnline(t *testing.T) {
	t.Parallel()
	for i, d := range logtest.Dialects {
		target := logtest.Dialects[(i+1)%len(logtest.Dialects)]
		t.Run(d.Name+" to "+target.Name, func(t *testing.T) {
			t.Parallel()
			from, to, dir := d.Fresh(t), target.Fresh(t), t.TempDir()+"/data"
			old := serveFor(t, dir, from, "--controllers=")
			if d.Servers > 1 { // that of SQLite cannot be opened
				if code, out := runPlinth(t, "copy", "--from", from, "--to", target.Fresh(t)); code != 0 || !strings.Contains(out, "a plinth serves the source") {
					t.Errorf("a copy that is not online: exit code %d: %s", code, out)
				}
			}
			l := newLoad(4)
			l.start(t.Context(), client(t, old))
			code, out := runPlinth(t, "copy", "--online", "--from", from, "--to", to)
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, out)
			}
			l.wait()
			_, err := client(t, old).Create(t.Context(), configMap("late", "1"), metav1.CreateOptions{})
			if seconds, retry := apierrors.SuggestsClientDelay(err); !apierrors.IsServiceUnavailable(err) || !retry || seconds != 1 || !strings.Contains(err.Error(), "this database has moved to "+dialects.Describe(to)) {
				t.Errorf("a write to the source: %v", err)
			}
			_, err = client(t, old).List(t.Context(), metav1.ListOptions{})
			must(t, err)
			if ready := readyz(t, old); !strings.Contains(ready, "this database has moved; the log says where to") || strings.Contains(ready, "://") {
				t.Errorf("readyz: %s", ready)
			}
			must(t, old.stop())
			if !strings.Contains(old.logged(), "has moved to "+dialects.Describe(to)) {
				t.Error("the log does not say where the database has moved")
			}
			p, err := launchBuilt(dir, from, "--controllers=")
			if err == nil || !strings.Contains(err.Error(), "exit status 2") || !strings.Contains(err.Error(), "has moved to "+dialects.Describe(to)) {
				t.Errorf("a start on the source: %v", err)
			}
			if err == nil {
				p.kill()
			}
			now := serveFor(t, dir, to, "--controllers=")
			checkCopied(t, l, client(t, now))
			there := listRevision(t, client(t, now))
			must(t, now.stop())
			if code, out := runPlinth(t, "copy", "--online", "--from", from, "--to", to); code != 0 {
				t.Errorf("the same copy again: exit code %d: %s", code, out)
			}

			if code, out := runPlinth(t, "copy", "--from", from, "--to", d.Fresh(t)); code != 1 || !strings.Contains(out, "copy from that one, or take this one back first") {
				t.Errorf("another copy: exit code %d: %s", code, out)
			}
			if code, out := runPlinth(t, "copy", "--take-back", "--from", from); code != 0 {
				t.Errorf("take back: exit code %d: %s", code, out)
			}
			back := serveFor(t, dir, from, "--controllers=", "--new-database")
			l.check(t, client(t, back))
			if now := listRevision(t, client(t, back)); now <= there {
				t.Errorf("taken back at revision %d, after the target was at %d", now, there)
			}
		})
	}
}

func listRevision(t *testing.T, client typedcorev1.ConfigMapInterface) int64 {
	t.Helper()
	list, err := client.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	revision, err := strconv.ParseInt(list.ResourceVersion, 10, 64)
	must(t, err)
	return revision
}

func readyz(t *testing.T, p *process) string {
	t.Helper()
	client, err := clientrest.HTTPClientFor(p.config(t))
	must(t, err)
	answer, err := client.Get(p.url + "/readyz")
	must(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	must(t, err)
	return string(body)
}

// checkCopied compares what a copy has with what the source has acknowledged: the same objects, with
// other revisions.
func checkCopied(t *testing.T, l *load, client typedcorev1.ConfigMapInterface) {
	t.Helper()
	for _, w := range l.writers {
		got, err := client.Get(t.Context(), w.name, metav1.GetOptions{})
		must(t, err)
		now, acked := count(t, got), w.ackedCount(t)
		if got.UID != w.acked.UID || now != acked && !(w.unknown && now == acked+1) {
			t.Errorf("%s: has %d at %s; acknowledged were %d (%+v), then %v", w.name, now, got.ResourceVersion, acked, w.acked, w.err)
		}
	}
}

// TestCopyOnlineKilled kills copies at all moments, while the source is written to. Each leaves a
// source that goes on, or one that is stopped for good, and a target that is not served. The next copy goes
// on, until one comes to its end.
func TestCopyOnlineKilled(t *testing.T) {
	t.Parallel()
	for i, source := range logtest.Dialects {
		target := logtest.Dialects[(i+2)%len(logtest.Dialects)]
		t.Run(source.Name+" to "+target.Name, func(t *testing.T) { copyKilled(t, source.Fresh(t), target.Fresh(t)) })
	}
}

func copyKilled(t *testing.T, from, to string) {
	fill(t, from, 5000)
	store, err := object.Open(t.Context(), openedLog(t, from), sqlstore.Options{})
	must(t, err)
	defer store.Close()
	var wg sync.WaitGroup
	for n := range 3 {
		wg.Go(func() { writeUntilMoved(t, store, n) })
	}
	kills := 0
	for after := 30 * time.Millisecond; ; after += after / 4 {
		cmd, out := plinth(t, nil, "copy", "--online", "--from", from, "--to", to)
		must(t, cmd.Start())
		kill := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		kill.Stop()
		if err == nil {
			break
		}
		if cmd.ProcessState.Exited() {
			t.Fatalf("%v: %s", err, out)
		}
		kills++
	}
	wg.Wait()
	t.Logf("%d copies were killed", kills)
	source, target := store.Revision(), openedLog(t, to)
	defer target.Close()
	head, err := target.Head(t.Context())
	must(t, err)
	if head.Floor <= source {
		t.Errorf("the target begins at %d; the source ended at %d", head.Floor, source)
	}
	rows, err := target.State(t.Context(), "/", "0", head.Revision, 100_000)
	must(t, err)
	there := map[string]string{}
	for _, row := range rows {
		there[row.Key] = string(row.Value)
	}
	want := map[string]string{}
	for _, e := range storedEntries(t, from) {
		want[e.Key] = string(e.Value)
	}
	if diff := cmp.Diff(want, there); diff != "" {
		t.Errorf("in the source (-) and in the target (+):\n%.2000s", diff)
	}
}

// storedEntries are the objects of a database that is served.
func storedEntries(t *testing.T, dsn string) []changelog.Row {
	t.Helper()
	log, err := dialects.Open(t.Context(), dsn, dialects.Options{Beside: true})
	must(t, err)
	defer log.Close()
	head, err := log.Head(t.Context())
	must(t, err)
	rows, err := log.State(t.Context(), "/", "0", head.Revision, 100_000)
	must(t, err)
	return rows
}

// writeUntilMoved makes, changes and deletes objects.
func writeUntilMoved(t *testing.T, store *sqlstore.Store, n int) {
	for i := 0; ; i++ {
		key := fmt.Sprintf("/registry/core/configmaps/default/c%06d", rand.IntN(2000)*3+n)
		change := sqlstore.Change{Key: key, Value: fmt.Appendf(nil, `{"metadata":{"name":"x"},"data":{"i":"%d"}}`, i)}
		if e := store.Get(key); e != nil {
			change.Expect, change.Delete = e.Revision, rand.IntN(3) == 0
		}
		_, err := store.Commit(t.Context(), change)
		if errors.Is(err, changelog.ErrMoved) {
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		time.Sleep(time.Millisecond)
	}
}
