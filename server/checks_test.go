package server

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
	"github.com/plinth-io/plinth/server/apitest"
)

// probeRow is what one path of the health endpoints answers. Errors end with a newline.
type probeRow struct {
	name, path string
	code       int
	body       string
}

// hookLines are the lines of the hooks of a server that shares its database with no other.
const hookLines = `[+]poststarthook/start-apiserver-admission-initializer ok
[+]poststarthook/generic-apiserver-start-informers ok
[+]poststarthook/priority-and-fairness-config-consumer ok
[+]poststarthook/priority-and-fairness-filter ok
[+]poststarthook/start-apiextensions-informers ok
[+]poststarthook/start-apiextensions-controllers ok
[+]poststarthook/crd-informer-synced ok
[+]poststarthook/start-system-namespaces-controller ok
[+]poststarthook/start-cluster-authentication-info-controller ok
[+]poststarthook/storage-readiness ok
[+]poststarthook/start-legacy-token-tracking-controller ok
[+]poststarthook/start-service-ip-repair-controllers ok
[+]poststarthook/rbac/bootstrap-roles ok
[+]poststarthook/scheduling/bootstrap-system-priority-classes ok
[+]poststarthook/priority-and-fairness-config-producer ok
[+]poststarthook/bootstrap-controller ok
[+]poststarthook/start-kubernetes-service-cidr-controller ok
[+]poststarthook/aggregator-reload-proxy-client-cert ok
[+]poststarthook/start-kube-aggregator-informers ok
[+]poststarthook/apiservice-status-local-available-controller ok
[+]poststarthook/apiservice-status-remote-available-controller ok
[+]poststarthook/apiservice-registration-controller ok
[+]poststarthook/apiservice-discovery-controller ok
[+]poststarthook/kube-apiserver-autoregistration ok
[+]poststarthook/apiservice-openapi-controller ok
[+]poststarthook/apiservice-openapiv3-controller ok
`

// lines is a verbose answer. changed are "from", "to" in it.
func lines(probe string, changed ...string) string {
	registered := strings.Replace(hookLines, "[+]poststarthook/apiservice-openapi-", "[+]autoregister-completion ok\n[+]poststarthook/apiservice-openapi-", 1)
	text := map[string]string{
		"livez":   "[+]ping ok\n[+]log ok\n[+]etcd ok\n" + registered,
		"healthz": "[+]ping ok\n[+]log ok\n[+]etcd ok\n[+]deciding-objects ok\n[+]config-files ok\n" + registered,
		"readyz":  "[+]ping ok\n[+]log ok\n[+]etcd ok\n[+]deciding-objects ok\n[+]config-files ok\n[+]etcd-readiness ok\n[+]informer-sync ok\n" + registered + "[+]shutdown ok\n",
	}[probe]
	verdict := " check passed\n"
	if strings.Contains(strings.Join(changed, ""), "[-]") {
		verdict = " check failed\n"
	}
	return strings.NewReplacer(changed...).Replace(text + probe + verdict)
}

const (
	etcdAway     = "[-]etcd failed: database unavailable: connection refused"
	notReadyAway = "[-]etcd-readiness failed: database unavailable: connection refused"
	// Only servers that share a database have these.
	leases       = "[+]poststarthook/start-kube-apiserver-identity-lease-controller ok\n[+]poststarthook/start-kube-apiserver-identity-lease-garbage-collector ok\n"
	legacy       = "[+]poststarthook/storage-readiness ok\n[+]poststarthook/start-legacy-token-tracking-controller ok\n"
	rowClasses   = "poststarthook/scheduling/bootstrap-system-priority-classes"
	rowBootstrap = "poststarthook/bootstrap-controller"
)

var unfinishedBootstrap = []string{
	"[+]" + rowClasses + " ok", "[-]" + rowClasses + " failed: not finished",
	"[+]" + rowBootstrap + " ok", "[-]" + rowBootstrap + " failed: not finished",
}

// https://kubernetes.io/docs/reference/using-api/health-checks/
var wellRows = []probeRow{
	{"livez", "/livez", 200, "ok"},
	{"readyz", "/readyz", 200, "ok"},
	{"healthz, deprecated", "/healthz", 200, "ok"},
	{"verbose prints out the checks and their status", "/readyz?verbose", 200, lines("readyz")},
	{"verbose with any value", "/livez?verbose=false", 200, lines("livez")},
	{"healthz knows no shutdown", "/healthz?verbose", 200, lines("healthz")},
	{"exclude leaves a check out", "/readyz?verbose&exclude=etcd", 200, lines("readyz", "etcd ok", "etcd excluded: ok")},
	{"exclude by another name", "/readyz?verbose&exclude=storage", 200, lines("readyz", "etcd ok", "etcd excluded: ok", "etcd-readiness ok", "etcd-readiness excluded: ok")},
	{"exclude, several times", "/readyz?verbose&exclude=log&exclude=ping", 200, lines("readyz", "log ok", "log excluded: ok", "ping ok", "ping excluded: ok")},
	{"exclude of what is not there", "/livez?verbose&exclude=b&exclude=a", 200,
		lines("livez", "livez check", "warn: some health checks cannot be excluded: no matches for \"a\",\"b\"\nlivez check")},
	{"exclude without verbose", "/livez?exclude=nothing", 200, "ok"},
	{"each check alone", "/livez/ping", 200, "ok"},
	{"each check alone, verbose", "/readyz/etcd?verbose", 200, "ok"},
	{"a check by another name", "/readyz/storage?verbose", 200, "ok"},
	{"a hook", "/livez/poststarthook/start-apiextensions-controllers", 200, "ok"},
	{"a hook with a slash in its name", "/readyz/poststarthook/scheduling/bootstrap-system-priority-classes", 200, "ok"},
	{"shutdown", "/readyz/shutdown", 200, "ok"},
	{"bootstrap", "/healthz/bootstrap", 200, "ok"},
	{"the database, as long as plinth can go on by itself", "/livez/etcd", 200, "ok"},
	{"registration", "/livez/autoregister-completion", 200, "ok"},
	{"a check that is not there", "/readyz/nope", 404, "404 page not found\n"},
	{"below a check", "/readyz/ping/x", 404, "404 page not found\n"},
	{"above checks", "/readyz/poststarthook", 404, "404 page not found\n"},
}

var startingRows = []probeRow{
	{"alive", "/livez", 200, "ok"},
	{"not ready", "/readyz", 500, lines("readyz", unfinishedBootstrap...)},
	{"not ready, verbose", "/readyz?verbose", 500, lines("readyz", unfinishedBootstrap...)},
	{"ready but for what is excluded", "/readyz?exclude=bootstrap&exclude=poststarthook/scheduling/bootstrap-system-priority-classes", 200, "ok"},
	{"the check that fails", "/readyz/bootstrap", 500, "internal server error: not finished\n"},
	{"another check", "/readyz/ping", 200, "ok"},
}

// endedRows are of a server whose custom resources have come to a stop.
var endedRows = []probeRow{
	{"not alive", "/livez", 500, lines("livez", "[+]poststarthook/start-apiextensions-controllers ok", "[-]poststarthook/start-apiextensions-controllers failed: has ended")},
	{"not ready", "/readyz", 500, lines("readyz", "[+]poststarthook/start-apiextensions-controllers ok", "[-]poststarthook/start-apiextensions-controllers failed: has ended")},
}

var stoppingRows = []probeRow{
	{"alive while stopping", "/livez", 200, "ok"},
	{"healthz while stopping", "/healthz", 200, "ok"},
	{"not ready while stopping", "/readyz", 500, lines("readyz", "[+]shutdown ok", "[-]shutdown failed: process is shutting down")},
	{"the shutdown check", "/readyz/shutdown", 500, "internal server error: process is shutting down\n"},
	{"ready but for the shutdown", "/readyz?exclude=shutdown", 200, "ok"},
}

var awayRows = []probeRow{
	{"not ready without a database", "/readyz", 500, lines("readyz", legacy, leases+legacy, "[+]etcd ok", etcdAway, "[+]etcd-readiness ok", notReadyAway)},
	{"alive without a database", "/livez?verbose", 200, lines("livez", legacy, leases+legacy)},
	{"alive without a database, the check alone", "/livez/etcd", 200, "ok"},
	{"not healthy without a database", "/healthz?verbose", 500, lines("healthz", legacy, leases+legacy, "[+]etcd ok", etcdAway)},
	{"the storage check", "/readyz/storage", 500, "internal server error: database unavailable: connection refused\n"},
	{"the same by upstream's name", "/healthz/etcd", 500, "internal server error: database unavailable: connection refused\n"},
	{"ready but for the storage", "/readyz?exclude=storage", 200, "ok"},
	{"ready but for the storage, by upstream's names", "/readyz?exclude=etcd&exclude=etcd-readiness", 200, "ok"},
}

func TestHealth(t *testing.T) {
	t.Run("well", func(t *testing.T) { checkProbes(t, start(t, Config{}), wellRows) })
	t.Run("starting", func(t *testing.T) {
		s := start(t, Config{})
		s.parts.set(bootstrapPart, notFinished)
		checkProbes(t, s, startingRows)
	})
	t.Run("a part has ended", func(t *testing.T) {
		s := start(t, Config{})
		s.parts.set(definitionsJob, ended)
		checkProbes(t, s, endedRows)
	})
	t.Run("stopping", func(t *testing.T) {
		s := New(Config{ShutdownDelay: time.Hour, ShutdownTimeout: 2 * time.Hour, Controllers: []string{}})
		if err := s.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		settle(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() { defer close(stopped); _ = s.Shutdown(ctx) }() // cut off below
		for !s.stopping.Load() {
			time.Sleep(time.Millisecond)
		}
		checkProbes(t, s, stoppingRows)
		code, _, body := apitest.Do(t, apitest.Admin(t, s), "POST", s.URL()+"/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"late"}}`)
		if code != 201 {
			t.Errorf("a write during the delay: %d %s", code, body)
		}
		cancel()
		<-stopped
	})
	t.Run("only a restart helps", func(t *testing.T) {
		dsn := logtest.SQLite(t)
		s := start(t, Config{DSN: dsn})
		db, err := sql.Open("sqlite3", strings.TrimPrefix(dsn, "sqlite://"))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(t.Context(), `DELETE FROM log WHERE id > 1; UPDATE sqlite_sequence SET seq = 1 WHERE name = 'log'`); err != nil {
			t.Fatal(err)
		}
		apitest.Do(t, apitest.Admin(t, s), "POST", s.URL()+"/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"a"}}`) // notices
		await(t, s, probeRow{path: "/livez", code: 500, body: lines("livez", "[+]etcd ok", "[-]etcd failed: database unavailable: the database has lost revisions "+
			"that were acknowledged, as by sqlite3's .restore; restart plinth, which goes on above them")})
	})
	for name, begin := range map[string]func(testing.TB) *dbserver.Server{"postgres": logtest.StartPostgres, "mariadb": logtest.StartMariaDB} {
		t.Run(name+" away and back", func(t *testing.T) {
			t.Parallel()
			db := begin(t)
			s := start(t, Config{DSN: logtest.CreateDatabase(t, db)})
			db.Kill()
			await(t, s, awayRows[0])
			checkProbes(t, s, awayRows)
			if err := db.Start(); err != nil {
				t.Fatal(err)
			}
			await(t, s, probeRow{path: "/readyz", code: 200, body: "ok"})
		})
	}
}

// await asks until the answer is row's.
func await(t *testing.T, s *Server, row probeRow) {
	t.Helper()
	client := apitest.Anonymous(t, s)
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		code, _, body := apitest.Do(t, client, "GET", s.URL()+row.path, "")
		if code == row.code && body == row.body {
			return
		}
		if time.Since(begun) > 2*time.Minute {
			t.Fatalf("%s: %d %q, want %d %q", row.path, code, body, row.code, row.body)
		}
	}
}

// checkProbes asks as everybody may, on a connection of its own. Single checks are for those who
// have the right to see them.
func checkProbes(t *testing.T, s *Server, rows []probeRow) {
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			client := apitest.Anonymous(t, s)
			if strings.Count(row.path, "/") > 1 {
				client = apitest.Admin(t, s)
			}
			code, header, body := apitest.Do(t, client, "GET", s.URL()+row.path, "")
			if code != row.code || body != row.body {
				t.Errorf("%s: %d %q, want %d %q", row.path, code, body, row.code, row.body)
			}
			if got := header.Get("Content-Type"); got != "text/plain; charset=utf-8" {
				t.Errorf("%s: content type %s", row.path, got)
			}
			if header.Get("Cache-Control") != "no-cache, private" {
				t.Errorf("%s: Cache-Control %s", row.path, header.Get("Cache-Control"))
			}
		})
	}
}

// TestComponentStatuses asks only about the database: what listens at the ports of the
// others depends on the machine.
func TestComponentStatuses(t *testing.T) {
	s := start(t, Config{})
	client := apitest.Admin(t, s)
	const path = "/api/v1/componentstatuses"
	healthy := `{"metadata":{"name":"database"},"conditions":[{"type":"Healthy","status":"True","message":"ok"}]}`
	for _, c := range []struct {
		method, path string
		code         int
		body         string
	}{
		{"GET", path + "/database", 200, `{"kind":"ComponentStatus","apiVersion":"v1",` + healthy[1:]},
		{"GET", path + "?fieldSelector=metadata.name%3Ddatabase", 200, `{"kind":"ComponentStatusList","apiVersion":"v1","metadata":{},"items":[` + healthy + `]}`},
		{"GET", path + "?fieldSelector=metadata.name%3Dnobody", 200, `{"kind":"ComponentStatusList","apiVersion":"v1","metadata":{},"items":[]}`},
		{"GET", path + "?labelSelector=a%3Db", 200, `{"kind":"ComponentStatusList","apiVersion":"v1","metadata":{},"items":[]}`},
		{"GET", path + "?fieldSelector=spec.x%3Da", 400, `"message":"\"spec.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""`},
		{"GET", path + "/nobody", 404, `"message":"componentstatus \"nobody\" not found"`},
		{"GET", path + "?watch=1", 405, `"message":"watch is not supported on resources of kind \"componentstatuses\""`},
		{"GET", "/api/v1/watch/componentstatuses", 404, `"message":"the server could not find the requested resource"`},
		{"GET", "/api/v1/namespaces/default/componentstatuses", 404, `"message":"the server could not find the requested resource"`},
		{"POST", path, 405, `"message":"the server does not allow this method on the requested resource"`},
		{"DELETE", path + "/database", 405, `"message":"the server does not allow this method on the requested resource"`},
	} {
		code, header, body := apitest.Do(t, client, c.method, s.URL()+c.path, "")
		if code != c.code || !strings.Contains(body, c.body) {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.path, code, body, c.code, c.body)
		}
		_, warned := header["Warning"]
		if routed := code != 404 && code != 405 || strings.Contains(body, "watch is not") || strings.Contains(body, "nobody"); warned != routed {
			t.Errorf("%s %s: %d with the warning %q", c.method, c.path, code, header["Warning"])
		}
	}
}

func TestComponentStatusesInProtobuf(t *testing.T) {
	s := start(t, Config{})
	config := clientrest.CopyConfig(s.RESTConfig())
	config.ContentType, config.WarningHandler = "application/vnd.kubernetes.protobuf", clientrest.NoWarnings{}
	statuses := kubernetes.NewForConfigOrDie(config).CoreV1().ComponentStatuses()
	list, err := statuses.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	if got := strings.Join(names, " "); got != "controller-manager database scheduler" || list.ResourceVersion != "" {
		t.Errorf("%s at %q", got, list.ResourceVersion)
	}
	one, err := statuses.Get(t.Context(), "database", metav1.GetOptions{})
	if err != nil || len(one.Conditions) != 1 || one.Conditions[0].Message != "ok" {
		t.Errorf("%v %v", one, err)
	}
}
