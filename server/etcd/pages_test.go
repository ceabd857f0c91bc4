package etcd

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/plinth-io/plinth/dialects/logtest"
)

// page returns the answer to a GET.
func (m *endpoint) page(path string) (code int, text string) {
	w := httptest.NewRecorder()
	m.Pages().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func TestPages(t *testing.T) {
	m := serveOn(t, "sqlite://:memory:", false, Options{})
	m.wantPages(t, [][2]string{
		{"/version", `200 {"etcdserver":"3.7.3","etcdcluster":"3.7.0","storage":"3.7.0"}`},
		{"/health", `200 {"health":"true","reason":""}`},
		{"/health?serializable=true", `200 {"health":"true","reason":""}`},
		{"/livez", "200 ok\n"},
		{"/livez?verbose", "200 [+]serializable_read ok\nok\n"},
		{"/readyz", "200 ok\n"},
		{"/readyz?verbose", "200 [+]data_corruption ok\n[+]serializable_read ok\n[+]linearizable_read ok\n[+]non_learner ok\nok\n"},
		{"/readyz?verbose&exclude=non_learner&exclude=nothing", "200 [+]data_corruption ok\n[+]serializable_read ok\n[+]linearizable_read ok\nok\n"},
		{"/readyz/data_corruption?verbose", "200 [+]data_corruption ok\nok\n"},
		{"/nothing", "404 404 page not found\n"},
	})
	m.alarm(t, alarmOn, alarmFull, 5)
	m.wantPages(t, [][2]string{
		{"/health", "503 " + `{"health":"false","reason":"ALARM NOSPACE"}` + "\n"},
		{"/health?exclude=NOSPACE", `200 {"health":"true","reason":""}`},
		{"/readyz", "200 ok\n"},
	})
	m.alarm(t, alarmOn, alarmBad, 5)
	m.wantPages(t, [][2]string{
		{"/health?exclude=NOSPACE", "503 " + `{"health":"false","reason":"ALARM CORRUPT"}` + "\n"},
		{"/livez", "200 ok\n"},
		{"/readyz", "503 [-]data_corruption failed: alarm activated: CORRUPT\n[+]serializable_read ok\n[+]linearizable_read ok\n[+]non_learner ok\n\n"},
		{"/readyz?exclude=data_corruption", "200 ok\n"},
		{"/readyz/data_corruption", "503 [-]data_corruption failed: alarm activated: CORRUPT\n\n"},
	})
	w := httptest.NewRecorder()
	m.Pages().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/version", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET" {
		t.Errorf("POST: %d, allow %q", w.Code, w.Header().Get("Allow"))
	}
}

func (m *endpoint) wantPages(t *testing.T, pages [][2]string) {
	t.Helper()
	for _, p := range pages {
		code, text := m.page(p[0])
		if got := fmt.Sprint(code, " ", text); got != p[1] {
			t.Errorf("%s: %q, want %q", p[0], got, p[1])
		}
	}
}

// A database that is away makes a member unhealthy, but not dead.
func TestPagesAway(t *testing.T) {
	database := logtest.StartPostgres(t)
	m := serveOn(t, logtest.CreateDatabase(t, database), false, Options{})
	m.put(t, "a", "1", 0)
	health := healthpb.NewHealthClient(m.conn)
	database.Kill()
	for path, want := range map[string]int{"/health": 503, "/readyz": 503, "/readyz/linearizable_read": 503, "/livez": 200, "/health?serializable=true": 200, "/version": 200, "/metrics": 200} {
		if code, text := m.page(path); code != want {
			t.Errorf("%s: %d %s, want %d", path, code, text, want)
		}
	}
	r, err := health.Check(bounded(t), &healthpb.HealthCheckRequest{})
	if err != nil || r.Status != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("gRPC health: %v, %v", r, err)
	}
	if err := database.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "healthy again", func() bool { code, _ := m.page("/health"); return code == 200 })
	eventually(t, "serving again", func() bool {
		r, err := health.Check(bounded(t), &healthpb.HealthCheckRequest{})
		return err == nil && r.Status == healthpb.HealthCheckResponse_SERVING
	})
}

func TestMetrics(t *testing.T) {
	m := serveOn(t, "sqlite://:memory:", false, Options{QuotaBackendBytes: 1 << 30})
	m.put(t, "a", "1", 0)
	m.put(t, "b", "1", 0)
	m.grant(t, 1, 100)
	m.alarm(t, alarmOn, alarmFull, 5)
	m.page("/health")
	m.page("/readyz")
	_, text := m.page("/metrics")
	for _, want := range []string{
		"etcd_server_has_leader 1\n", "etcd_server_is_leader 1\n", "etcd_debugging_mvcc_current_revision 3\n",
		"etcd_debugging_mvcc_compact_revision -1\n", "etcd_debugging_mvcc_keys_total 2\n",
		"etcd_mvcc_db_total_size_in_bytes ", "etcd_server_quota_backend_bytes 1.073741824e+09\n",
		"etcd_debugging_lease_granted_total 1\n", `etcd_server_version{server_version="3.7.3"} 1`,
		`etcd_cluster_version{cluster_version="3.7"} 1`, `etcd_server_alarms{alarm_type="NOSPACE",server_id="5"} 1`,
		"etcd_server_health_failures 1\n", `etcd_server_healthchecks_total{name="linearizable_read",status="success",type="readyz"} 1`,
		"go_goroutines ",
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("not in the metrics: %q", want)
		}
	}
}
