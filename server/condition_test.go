package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/cluster"
	"github.com/plinth-io/plinth/server/pki"
	"github.com/plinth-io/plinth/server/status"
)

func statusOf(t *testing.T, s *Server) (all status.Status) {
	t.Helper()
	code, _, body := apitest.Do(t, apitest.Admin(t, s), "GET", s.URL()+cluster.StatusPath, "")
	if code != http.StatusOK {
		t.Fatalf("status: %d %s", code, body)
	}
	must(t, json.Unmarshal([]byte(body), &all))
	return all
}

// Each of the servers of a database tells of all, of what is in the database, and of itself.
func TestStatus(t *testing.T) {
	logtest.Each(t, func(t *testing.T, dialect logtest.Dialect) {
		one, other := startBoth(t, dialect, Config{})
		client := apitest.Admin(t, one)
		for i := range 3 {
			body := fmt.Sprintf(`{"metadata":{"name":"a"},"data":{"n":"%d"}}`, i)
			if i == 0 {
				apitest.Do(t, client, "POST", one.URL()+"/api/v1/namespaces/default/configmaps", body)
				continue
			}
			apitest.Do(t, client, "PUT", one.URL()+"/api/v1/namespaces/default/configmaps/a", body)
		}
		if code, _, _ := apitest.Do(t, client, "POST", one.URL()+cluster.StatusPath, ""); code != http.StatusMethodNotAllowed {
			t.Errorf("POST: %d", code)
		}
		servers := 1
		if one != other {
			servers = 2
		}
		var all status.Status
		apitest.Eventually(t, "all servers are known", func() bool {
			all = statusOf(t, one)
			return len(all.Replicas) == servers
		})
		if first := all.Replicas[0]; !first.Asked || first.Version != BuildInfo().Version || first.Revision == 0 {
			t.Errorf("this server: %+v", first)
		}
		for _, r := range all.Replicas[1:] {
			if r.Asked || r.Name != other.identity || r.Version != BuildInfo().Version || r.Revision == 0 || r.Since.IsZero() || r.Seen.IsZero() {
				t.Errorf("the other server: %+v", r)
			}
		}
		d := all.Database
		// Rows are counted after the revision is read, and the servers write meanwhile.
		later := statusOf(t, one).Database.Revision
		if d.Size == nil || d.Rows < d.Objects || d.Dead < 2 || d.Bytes == 0 || d.ClusterID == "" || !d.Usable || later < d.Rows {
			t.Errorf("database: %+v, %+v, later at %d", d, d.Size, later)
		}
		maps, err := kubernetes.NewForConfigOrDie(one.InProcess(nil)).CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
		must(t, err)
		if !slices.ContainsFunc(all.Resources, func(r status.Resource) bool {
			return r.Name == "configmaps" && r.Objects == len(maps.Items) && r.Bytes > 100*int64(r.Objects)
		}) {
			t.Errorf("resources: %+v, want %d configmaps", all.Resources, len(maps.Items))
		}
		if all.Watches.Open == 0 || all.Writes.Transactions == 0 || all.Writes.P99 == 0 || len(all.Certificates) == 0 {
			t.Errorf("%+v", all)
		}
	})
}

// Who may read metrics because of the group for monitoring may read the status, and nobody else.
func TestStatusRights(t *testing.T) {
	s := start(t, Config{})
	for group, want := range map[string]int{user.MonitoringGroup: http.StatusOK, "others": http.StatusForbidden} {
		for _, path := range []string{"/metrics", cluster.StatusPath} {
			code, _, body := apitest.Do(t, clientAs(t, s, "somebody", group), "GET", s.URL()+path, "")
			if code != want {
				t.Errorf("%s, of the group %s: %d %s", path, group, code, body)
			}
		}
	}
}

// An alarm is in the metrics, in the verbose answer of a readiness that does not fail, in the status, and
// an event.
func TestAlarm(t *testing.T) {
	s := start(t, Config{DataDir: t.TempDir()}, func(s *Server) {
		s.certificateLives = pki.Lives{Authority: pki.DefaultLives.Authority, Certificate: 48 * time.Hour, RenewBefore: time.Hour}
	})
	client := apitest.Admin(t, s)
	get := func(path string) string {
		code, _, body := apitest.Do(t, client, "GET", s.URL()+path, "")
		if code != http.StatusOK {
			t.Errorf("%s: %d %s", path, code, body)
		}
		return body
	}
	apitest.Eventually(t, "the alarm begins", func() bool {
		return strings.Contains(get("/metrics"), "\nplinth_alarm{alarm=\"certificate_ends\"} 1\n")
	})
	if body := get("/readyz?verbose"); !strings.Contains(body, "\nwarn: alarm certificate_ends: a certificate ends soon") {
		t.Errorf("readyz says\n%s", body)
	}
	if body := get("/livez?verbose"); strings.Contains(body, "warn:") {
		t.Errorf("livez says\n%s", body)
	}
	if on := statusOf(t, s).Alarms; len(on) != 1 || on[0].Name != "certificate_ends" || !strings.Contains(on[0].Detail, "apiserver ends") {
		t.Errorf("status: %+v", on)
	}
	kube := kubernetes.NewForConfigOrDie(s.InProcess(nil))
	apitest.Eventually(t, "there is an event", func() bool {
		events, err := kube.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=CertificateEnds"})
		return err == nil && len(events.Items) == 1
	})
}
