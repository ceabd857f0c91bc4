package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/servertest"
	serverstatus "github.com/plinth-io/plinth/server/status"
)

// TestServer: the page has what the server tells of itself, and the figures are those of its metrics.
func TestServer(t *testing.T) {
	b := newWorkbench(t)
	newStory(t, b.server.Config)
	page := b.open("server").is(200).has("Replicas", "this one", "no alarm", "rows live", "kept", "watches", "Bytes by resource", "deployments.apps",
		"/x/kinds/deployments.apps", "Last faults", "None since the start.", "No backups are made at intervals", `data-figures="/x/server/figures"`)
	page.hasNot("system:monitoring", "needs plinth")
	var before, after figures
	if err := json.Unmarshal([]byte(b.open("server/figures").is(200).html), &before); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		b.make("configmaps", "default", `{apiVersion: v1, kind: ConfigMap, metadata: {name: counted-%d}}`, i)
	}
	if err := json.Unmarshal([]byte(b.open("server/figures").is(200).html), &after); err != nil {
		t.Fatal(err)
	}
	if n := after.Requests["create"] - before.Requests["create"]; n < 3 {
		t.Errorf("%d of 3 creations are counted", n)
	}
	if after.Process != before.Process || after.Process == 0 || after.Time < before.Time {
		t.Errorf("%v then %v", before, after)
	}
	if after.Bytes == nil || *after.Bytes == 0 || after.Rows == nil || after.Changes == nil || *after.Changes < *before.Changes+3 {
		t.Errorf("the database: %+v", after)
	}
	count := func(f figures) int64 { return f.Buckets[len(f.Buckets)-1].Count }
	if last := after.Buckets[len(after.Buckets)-1]; last.Most != 0 || count(after)-count(before) < 3 {
		t.Errorf("durations: %+v then %+v", before.Buckets, after.Buckets)
	}
}

// TestServerRights: a visitor without rights sees for each part which one is missing, as the API says it.
func TestServerRights(t *testing.T) {
	b := newWorkbench(t)
	page := b.as("stranger").open("server").is(200)
	page.has(`User "stranger" cannot get path "/plinth/status"`, `User "stranger" cannot get path "/metrics"`, `cannot get resource "leases"`, "system:monitoring")
	page.hasNot("No backups are made", "data-figures")
	b.as("stranger").open("server/figures").is(403).has("/metrics")

	b.make("clusterrolebindings.v1.rbac.authorization.k8s.io", "", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: stranger},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:monitoring"}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: stranger}]}`)
	deadline := time.Now().Add(time.Minute)
	for b.as("stranger").open("server/figures").code != 200 && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond)
	}
	b.as("stranger").open("server").is(200).has("Replicas", "data-figures", `cannot get resource "leases"`).hasNot("system:monitoring")
}

// otherServer is a page for a server that answers a few paths: what is told of one that is in trouble, or is no plinth.
func otherServer(t *testing.T, answers map[string]string) *workbench {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/metrics" {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		}
		if !ok {
			w.WriteHeader(404)
			answer = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","code":404}`
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(api.Close)
	page := httptest.NewServer(New(Options{Base: "/x/", Door: &openDoor{&clientrest.Config{Host: api.URL}}}))
	t.Cleanup(page.Close)
	return &workbench{T: t, page: page}
}

// kubeMetrics are what a kube-apiserver says, in part.
const kubeMetrics = `# HELP apiserver_request_total [STABLE] Counter of apiserver requests.
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"} 7
apiserver_request_total{code="0",component="apiserver",dry_run="",group="",resource="pods",scope="cluster",subresource="",verb="WATCH",version="v1"} 4
apiserver_request_total{code="404",component="",dry_run="",group="",resource="",scope="",subresource="/x",verb="GET",version=""} 3
apiserver_request_total{code="429",component="",dry_run="",group="",resource="pods",scope="",subresource="",verb="APPLY",version=""} 2
apiserver_request_total{code="500",component="",dry_run="",group="",resource="pods",scope="",subresource="",verb="CONNECT",version=""} 1
# HELP apiserver_request_duration_seconds [STABLE] Response latency distribution.
# TYPE apiserver_request_duration_seconds histogram
apiserver_request_duration_seconds_bucket{verb="LIST",le="0.005"} 5
apiserver_request_duration_seconds_bucket{verb="LIST",le="0.025"} 6
apiserver_request_duration_seconds_bucket{verb="LIST",le="+Inf"} 7
apiserver_request_duration_seconds_sum{verb="LIST"} 0.5
apiserver_request_duration_seconds_count{verb="LIST"} 7
apiserver_request_duration_seconds_bucket{verb="GET",le="0.005"} 1
apiserver_request_duration_seconds_bucket{verb="GET",le="0.025"} 3
apiserver_request_duration_seconds_bucket{verb="GET",le="+Inf"} 3
apiserver_request_duration_seconds_sum{verb="GET"} 0.1
apiserver_request_duration_seconds_count{verb="GET"} 3
apiserver_request_duration_seconds_bucket{verb="WATCH",le="+Inf"} 900
apiserver_request_duration_seconds_sum{verb="WATCH"} 90000
apiserver_request_duration_seconds_count{verb="WATCH"} 900
# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.7e+09
# a line that is none of the format }{
something{else="x"} 5
`

// TestServerOfOthers: of a kube-apiserver there are its metrics; the rest says that it needs plinth.
func TestServerOfOthers(t *testing.T) {
	b := otherServer(t, map[string]string{"/metrics": kubeMetrics, "/version": `{"gitVersion":"v1.37.2"}`,
		"/api": `{"kind":"APIVersions","versions":["v1"]}`, "/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
		"/api/v1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod","namespaced":true,"verbs":["list"]}]}`})
	b.open("server").is(200).has("This needs plinth", "data-figures", "Backups at intervals need plinth").hasNot("Replicas", "system:monitoring")
	var f figures
	if err := json.Unmarshal([]byte(b.open("server/figures").is(200).html), &f); err != nil {
		t.Fatal(err)
	}
	for way, n := range map[string]int64{"list": 7, "watch": 4, "get": 3, "change": 2, "other": 1} {
		if f.Requests[way] != n {
			t.Errorf("%s: %d, not %d", way, f.Requests[way], n)
		}
	}
	for how, n := range map[string]int64{"4xx": 3, "429": 2, "5xx": 1} {
		if f.Refused[how] != n {
			t.Errorf("%s: %d, not %d", how, f.Refused[how], n)
		}
	}
	if got := fmt.Sprint(f.Buckets); got != "[{0.005 6} {0.025 9} {0 10}]" {
		t.Errorf("durations without watches: %s", got)
	}
	if f.Bytes != nil || f.Process != 1.7e9 {
		t.Errorf("%+v", f)
	}
	b.open("now").is(501).has("This server keeps no history")
	b.open("").is(200).has("This server keeps no history")
}

// TestServerInTrouble: alarms come first, on the first page too; faults, old certificates, lag and backups that fail are
// told, and no text of the server is read as HTML.
func TestServerInTrouble(t *testing.T) {
	now := time.Now()
	status := serverstatus.Status{
		Time: now, Started: now.Add(-time.Hour),
		Alarms:       []serverstatus.Alarm{{Name: "diskFull " + hostile, Since: now.Add(-time.Minute), Text: "text " + hostile, Detail: "detail " + hostile}},
		Database:     serverstatus.Database{Name: "db " + hostile, Revision: 1234567, Floor: 1200000, Objects: 4321, CompactionBehind: 90, Size: &serverstatus.Size{Rows: 5000, Dead: 679, Bytes: 3 << 20}},
		Replicas:     []serverstatus.Replica{{Name: "one" + hostile, Version: "v1", Seen: now, Lag: 2.5, Asked: true}, {Name: "two", Version: "v2" + hostile, Seen: now.Add(-5 * time.Minute)}},
		Resources:    []serverstatus.Resource{{Name: "configmaps" + hostile, Objects: 3, Bytes: 4096}, {Name: "secrets", Objects: 1, Bytes: 1024}},
		Watches:      serverstatus.Watches{Open: 9, Slowest: &serverstatus.Slowest{Prefix: "/registry/" + hostile, Behind: 77, For: 3, FromLog: true}},
		Faults:       []serverstatus.Fault{{Kind: "outage", Since: now.Add(-time.Minute), Text: "fault " + hostile}},
		Certificates: map[string]time.Time{"old " + hostile: now.Add(-time.Hour), "ending": now.Add(5 * 24 * time.Hour), "young": now.Add(300 * 24 * time.Hour)},
		Backups: &serverstatus.Backups{Count: 70, Read: now.Add(-time.Hour), Fault: "fault " + hostile,
			Files: []serverstatus.BackupFile{{Name: "file " + hostile, Time: now.Add(-3 * time.Hour), Revision: 1234000, Bytes: 2 << 20}}},
	}
	text, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	failed := fmt.Sprintf("# TYPE plinth_backup_failure_timestamp_seconds gauge\nplinth_backup_failure_timestamp_seconds %d\n", now.Unix()-60)
	b := otherServer(t, map[string]string{
		"/plinth/status": string(text), "/metrics": failed, "/version": `{"gitVersion":"v1.37.2+plinth-v0.5.0"}`,
		"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/plinth-backup": fmt.Sprintf(
			`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","spec":{"holderIdentity":"two","leaseDurationSeconds":86400,"renewTime":%q}}`, now.Add(-2*time.Hour).UTC().Format("2006-01-02T15:04:05.000000Z")),
	})
	page := b.open("server").is(200)
	page.has("An alarm is on", "text "+hostile, "detail "+hostile, "the database is away", "1\u202f234\u202f567", "floor 1\u202f200\u202f000", "4\u202f321", "679 dead", "3.00 MiB",
		"two", "2.50 s", "77 revisions and 3.00 s behind and reads the log", "fault "+hostile, "lasts", "has ended", "soon", "compaction is behind", "configmaps"+hostile,
		"every 24h", "120m ago", "by two", "A backup failed",
		"file "+hostile, "1\u202f234\u202f000", "2.00 MiB", "newest of 70 files", "cannot be read since", ": fault "+hostile)
	page.hasNot("<script>alert", "no alarm", "NaN", "Inf")
	b.open("").is(200).has("An alarm is on", "text "+hostile, "4\u202f321").hasNot("<script>alert")
}

// TestServerBackups: the files of backups that exist are on the page, for those who may read the status.
func TestServerBackups(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	s := server.New(server.Config{BackupInterval: time.Hour, BackupDir: dir})
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	page := httptest.NewServer(New(Options{Base: "/x/", Door: &openDoor{s.RESTConfig()}}))
	t.Cleanup(page.Close)
	b := &workbench{T: t, page: page}
	var files []string
	for deadline := time.Now().Add(time.Minute); len(files) == 0 && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		files, _ = filepath.Glob(filepath.Join(dir, "plinth-*.plinth"))
	}
	if len(files) != 1 {
		t.Fatalf("backups: %q", files)
	}
	for deadline := time.Now().Add(time.Minute); !strings.Contains(b.open("server").html, "These files are"); {
		if time.Now().After(deadline) {
			t.Fatal("the page does not have the backup: " + b.open("server").html)
		}
	}
	b.open("server").is(200).has("<td class=\"wide\">"+filepath.Base(files[0])+"</td>", "plinth verify FILE").hasNot(dir)
	b.as("stranger").open("server").is(200).hasNot(filepath.Base(files[0]))
}

// TestServerInBrowser: the charts are drawn from what the server counts, and the page goes on when it was away.
func TestServerInBrowser(t *testing.T) {
	srv := servertest.Start(t)
	s := newStory(t, srv.Config)
	l, config := newLine(t, srv.Config)
	base, address := local(t, config)
	b := tabAt(t, base, address)
	for _, theme := range []string{"light", "dark"} {
		b.theme(theme)
		b.open("server")
		b.wait(`document.querySelectorAll(".chart canvas").length === 4`)
		b.wait(`/get [\d.]+ \/s/.test(document.querySelector("#rate-legend").innerText) && /database [\d.]+ [KM]iB/.test(document.querySelector("#grown-legend").innerText)`)
		b.accessible()
	}
	b.sound()
	s.create("ann", `{apiVersion: v1, kind: ConfigMap, metadata: {name: one-more, namespace: shop}}`)
	before := eval[string](b, `document.querySelector("#condition").innerText`)
	b.wait(fmt.Sprintf(`document.querySelector("#condition").innerText !== %q`, before)) // the revision, without a reload
	l.cut(true)
	b.wait(`document.querySelector("#toast").textContent.length > 0`)
	time.Sleep(100 * time.Millisecond)
	l.cut(false)
	b.sees("The server is back")
}
