package main

import (
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
)

// TestDatabaseRestart stops, and then kills, the database server under load. Meanwhile
// writes are refused, /readyz says why, and when it is back plinth goes on by itself
// with all that it had acknowledged.
func TestDatabaseRestart(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) *dbserver.Server{"postgres": logtest.StartPostgres, "mariadb": logtest.StartMariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := start(t)
			p := serveFor(t, t.TempDir()+"/data", logtest.CreateDatabase(t, db), "--request-timeout=2m")
			for _, end := range []func(){db.Stop, db.Kill} {
				l := newLoad(4)
				l.start(t.Context(), client(t, p))
				soon(t, "the load is on", func() bool { return progress(t, p) > 50 })
				end()
				l.wait()
				expectAway(t, p)
				must(t, db.Start())
				expectBack(t, p)
				l.check(t, client(t, p))
				must(t, client(t, p).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
			}
		})
	}
}

// TestDatabaseFrozen has the database server hang instead: it accepts connections and answers
// nothing, so no connection reports an error.
func TestDatabaseFrozen(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) *dbserver.Server{"postgres": logtest.StartPostgres, "mariadb": logtest.StartMariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := start(t)
			p := serveFor(t, t.TempDir()+"/data", logtest.CreateDatabase(t, db), "--controllers=")
			must(t, db.Freeze())
			expectAway(t, p)
			if got := request(t, p, "GET", "/api/v1/namespaces/default/configmaps/none", ""); !isRefused(got) {
				t.Errorf("a read that must be the most recent: %s", got)
			}
			must(t, db.Thaw())
			expectBack(t, p)
		})
	}
}

// progress returns how many writes the load has done.
func progress(t *testing.T, p *process) int {
	list, err := client(t, p).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	writes := 0
	for _, c := range list.Items {
		if strings.HasPrefix(c.Name, "load-") {
			writes += count(t, &c)
		}
	}
	return writes
}

const awayConfigMap = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"away"}}`

// expectAway checks what a server without its database answers.
func expectAway(t *testing.T, p *process) {
	t.Helper()
	expectUnready(t, p, "database unavailable")
	if got := request(t, p, "POST", "/api/v1/namespaces/default/configmaps", awayConfigMap); !isRefused(got) {
		t.Errorf("a write: %s", got)
	}
}

func isRefused(response string) bool {
	return strings.HasPrefix(response, "HTTP 503\n") && strings.Contains(response, "Retry-After: ") &&
		strings.Contains(response, `"reason":"ServiceUnavailable"`)
}

func expectUnready(t *testing.T, p *process, why string) {
	t.Helper()
	soon(t, "/readyz fails, because of "+why, func() bool {
		got := request(t, p, "GET", "/readyz/storage", "")
		return strings.HasPrefix(got, "HTTP 500") && strings.Contains(got, why)
	})
	if got := request(t, p, "GET", "/readyz", ""); !strings.HasPrefix(got, "HTTP 500") || !strings.Contains(got, "[-]etcd failed") {
		t.Errorf("/readyz: %s", got)
	}
	if got := request(t, p, "GET", "/livez", ""); !strings.HasPrefix(got, "HTTP 200") {
		t.Errorf("/livez: %s", got)
	}
}

func expectReady(t *testing.T, p *process) {
	t.Helper()
	soon(t, "/readyz recovers", func() bool { return strings.HasPrefix(request(t, p, "GET", "/readyz", ""), "HTTP 200") })
}

// expectBack checks that it recovers without help, and that a write which was refused
// has not been done.
func expectBack(t *testing.T, p *process) {
	t.Helper()
	expectReady(t, p)
	patiently(t, "write again", func() error {
		_, err := client(t, p).Create(t.Context(), configMap("back", "1"), metav1.CreateOptions{})
		return err
	})
	if _, err := client(t, p).Get(t.Context(), "away", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get of what was refused: %v", err)
	}
}

// request sends one request as the admin.
func request(t *testing.T, p *process, method, path, body string) string {
	t.Helper()
	c, err := clientFor(p.kubeconfig(), "")
	must(t, err)
	defer c.CloseIdleConnections()
	var content []byte
	if body != "" {
		content = []byte(body)
	}
	out, err := exchange(c, method, p.url+path, http.Header{}, content)
	must(t, err)
	return out
}

// TestDiskFull lets the files of a server grow no more. Writes are then refused, or their
// outcome is said to be unknown, and reads go on; when the limit is lifted, writes do too.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/data"
	p := serveFor(t, dir, "sqlite://"+dir+"/plinth.db", "--controllers=")
	l := newLoad(4)
	l.start(t.Context(), client(t, p))
	soon(t, "the load is on", func() bool { return progress(t, p) > 50 })
	limitFiles(t, p, "1")
	l.wait()
	for _, w := range l.writers {
		if !apierrors.IsServiceUnavailable(w.err) && !apierrors.IsTimeout(w.err) {
			t.Errorf("a write on a full disk: %v", w.err)
		}
	}
	expectUnready(t, p, "file too large")
	away := request(t, p, "POST", "/api/v1/namespaces/default/configmaps", awayConfigMap)
	if !isRefused(away) && !(strings.HasPrefix(away, "HTTP 504\n") && strings.Contains(away, "whether it was stored is not known")) {
		t.Errorf("a write on a full disk: %s", away)
	}
	if list, err := client(t, p).List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) < 4 {
		t.Errorf("a read on a full disk: %v, %v", list, err)
	}
	limitFiles(t, p, "unlimited")
	patiently(t, "write again", func() error {
		_, err := client(t, p).Create(t.Context(), configMap("again", "1"), metav1.CreateOptions{})
		return err
	})
	expectReady(t, p)
	l.check(t, client(t, p))
}

// limitFiles sets how large a file the process may write. The Go runtime ignores the
// signal that comes with it, so writes fail as on a full disk.
func limitFiles(t *testing.T, p *process, bytes string) {
	t.Helper()
	out, err := exec.Command("prlimit", "--pid", strconv.Itoa(p.cmd.Process.Pid), "--fsize="+bytes+":unlimited").CombinedOutput()
	if err != nil {
		t.Fatalf("prlimit (package util-linux): %v: %s", err, out)
	}
}
