package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/recordedtest"
)

// TestRecordedLeases plays what a kubelet and kubectl auth whoami ask of Leases and
// SelfSubjectReviews.
func TestRecordedLeases(t *testing.T) {
	play := func(t *testing.T, client *http.Client, url string) {
		apitest.Do(t, client, "POST", url+"/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"leases"}}`)
		for _, e := range recordedtest.Read(t, "testdata/recorded/leases.txt") {
			t.Run(e.Name, func(t *testing.T) { e.Play(t, client, url) })
		}
	}
	if u := recordedtest.StartUpstream(t, ""); u != nil {
		play(t, u.Admin, u.URL)
		return
	}
	aloneAndShared(t, Config{}, func(t *testing.T, s, _ *Server) { play(t, apitest.Admin(t, s), s.URL()) })
}

// What every cluster begins with comes back when somebody deletes it.
func TestDeletedServiceComesBack(t *testing.T) {
	s := New(Config{Linger: time.Millisecond, Controllers: []string{}})
	s.times.Maintain = 10 * time.Millisecond
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	client, begun := apitest.Admin(t, s), time.Now()
	url := s.URL() + "/api/v1/namespaces/default/services/kubernetes"
	if code, _, body := apitest.Do(t, client, "DELETE", url, ""); code != http.StatusOK {
		t.Fatalf("delete: %d %s", code, body)
	}
	for code := 0; code != http.StatusOK; time.Sleep(time.Millisecond) {
		if time.Since(begun) > 2*time.Minute {
			t.Fatalf("the Service does not come back: %d", code)
		}
		code, _, _ = apitest.Do(t, client, "GET", url, "")
	}
}

// What plinth makes itself says so, as kube-apiserver's objects do.
func TestPlinthManagesWhatItMakes(t *testing.T) {
	s := start(t, Config{})
	client := kubernetes.NewForConfigOrDie(s.InProcess(nil))
	namespaces, err1 := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	classes, err2 := client.SchedulingV1().PriorityClasses().List(t.Context(), metav1.ListOptions{})
	service, err3 := client.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	objects := []metav1.Object{service}
	for i := range namespaces.Items {
		objects = append(objects, &namespaces.Items[i])
	}
	for i := range classes.Items {
		objects = append(objects, &classes.Items[i])
	}
	if len(objects) < 7 {
		t.Errorf("only %d objects", len(objects))
	}
	for _, o := range objects {
		var managers []string
		for _, entry := range o.GetManagedFields() {
			managers = append(managers, entry.Manager)
		}
		if got := strings.Join(managers, " "); got != "plinth" {
			t.Errorf("%s is managed by %q", o.GetName(), got)
		}
	}
}

const (
	apiServiceKeys  = "/registry/apiregistration.k8s.io/apiservices/"
	apiServices     = "/apis/apiregistration.k8s.io/v1/apiservices"
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
)

// replicas runs a test on each dialect, with two servers where a database takes them.
func replicas(t *testing.T, test func(t *testing.T, servers []*Server)) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		var servers []*Server
		for range d.Servers {
			servers = append(servers, start(t, Config{DSN: dsn}))
		}
		test(t, servers)
	})
}

// client is the admin's at one of several servers of a database.
type client struct {
	t      *testing.T
	http   *http.Client
	url    string
	config *clientrest.Config
}

func clientOf(t *testing.T, s *Server) client {
	return client{t, apitest.Admin(t, s), s.URL(), s.RESTConfig()}
}

func (c client) do(method, path, body string, want int) string {
	c.t.Helper()
	code, _, answer := apitest.Do(c.t, c.http, method, c.url+path, body)
	if code != want {
		c.t.Fatalf("%s %s: got status %d, want %d: %s", method, path, code, want, answer)
	}
	return answer
}

// service returns an APIService, nil if there is none.
func (c client) service(name string) *apiregistration.APIService {
	c.t.Helper()
	code, _, answer := apitest.Do(c.t, c.http, "GET", c.url+apiServices+"/"+name, "")
	if code == http.StatusNotFound {
		return nil
	}
	s := &apiregistration.APIService{}
	if err := json.Unmarshal([]byte(answer), s); err != nil || code != http.StatusOK {
		c.t.Fatalf("get %s: status %d, %v: %s", name, code, err, answer)
	}
	return s
}

func widgets(group string, versions ...string) string {
	var list []string
	for i, v := range versions {
		name, unserved := strings.CutSuffix(v, "-")
		list = append(list, fmt.Sprintf(`{"name":%q,"served":%t,"storage":%t,"schema":{"openAPIV3Schema":{"type":"object"}}}`, name, !unserved, i == 0))
	}
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.` + group + `"},
		"spec":{"group":"` + group + `","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[` + strings.Join(list, ",") + `]}}`
}

// Every group version that is served has an APIService, as kube-apiserver's autoregister
// and crdregistration controllers keep them.
func TestAPIServices(t *testing.T) {
	replicas(t, func(t *testing.T, servers []*Server) {
		s := servers[0]
		first, last := clientOf(t, s), clientOf(t, servers[len(servers)-1])
		for _, own := range builtin.APIServices(s.kinds.Set()) {
			got := first.service(own.Name)
			if diff := cmp.Diff(own.Spec, got.Spec); diff != "" || got.Labels["kube-aggregator.kubernetes.io/automanaged"] != "onstart" {
				t.Errorf("%s is labelled %v and differs (-want +got):\n%s", own.Name, got.Labels, diff)
			}
			if c := helper.GetAPIServiceConditionByType(got, "Available"); c == nil || c.Status != "True" || c.Reason != "Local" || c.Message != "Local APIServices are always available" {
				t.Errorf("%s: condition %+v", own.Name, c)
			}
		}

		first.do("POST", definitionsPath, widgets("example.com", "v1", "v2", "v3-"), 201)
		apitest.Eventually(t, "both served versions are registered", func() bool {
			return last.service("v1.example.com") != nil && last.service("v2.example.com") != nil
		})
		if last.service("v3.example.com") != nil {
			t.Error("a version that is not served is registered")
		}
		want := apiregistration.APIServiceSpec{Group: "example.com", Version: "v2", GroupPriorityMinimum: 1000, VersionPriority: 100}
		if got := first.service("v2.example.com"); !cmp.Equal(got.Spec, want) || got.Labels["kube-aggregator.kubernetes.io/automanaged"] != "true" {
			t.Errorf("of a definition: %v %+v", got.Labels, got.Spec)
		}

		last.do("DELETE", apiServices+"/v2.example.com", "", 200)
		apitest.Eventually(t, "what a definition makes comes back", func() bool { return first.service("v2.example.com") != nil })
		body := strings.ReplaceAll(first.do("GET", apiServices+"/v1.example.com", "", 200), `"groupPriorityMinimum":1000`, `"groupPriorityMinimum":3000`)
		first.do("PUT", apiServices+"/v1.example.com", body, 200)
		apitest.Eventually(t, "what a definition makes is put back", func() bool {
			return last.service("v1.example.com").Spec.GroupPriorityMinimum == 1000
		})
		first.do("DELETE", apiServices+"/v1.policy", "", 200)
		first.do("POST", apiServices, `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v9.policy"},
			"spec":{"group":"policy","version":"v9","groupPriorityMinimum":1,"versionPriority":1}}`, 201)

		last.do("DELETE", definitionsPath+"/widgets.example.com", "", 200)
		apitest.Eventually(t, "the definition's are deleted", func() bool {
			return first.service("v1.example.com") == nil && first.service("v2.example.com") == nil
		})
		if first.service("v1.policy") != nil || last.service("v9.policy") == nil {
			t.Error("a built-in one was made again, or somebody else's deleted")
		}
		for _, s := range servers {
			checkWrites(t, s)
		}
	})
}

// checkWrites sees that nothing was written more often than it had to be: several servers
// that disagreed would write for ever.
func checkWrites(t *testing.T, s *Server) {
	t.Helper()
	if _, err := s.store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	w, err := s.store.Watch(apiServiceKeys, apiServiceKeys, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	writes := map[string]int{}
	for through := int64(0); through < s.store.Revision(); {
		events, now, err := w.Poll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range events {
			writes[strings.TrimPrefix(ev.Entry.Key, apiServiceKeys)]++
		}
		through = now
	}
	want := map[string]int{
		"v1.policy":      2,     // made, deleted by the test
		"v9.policy":      1,     // made by the test
		"v1.example.com": 1 + 3, // made, changed by the test, put back, deleted
		"v2.example.com": 1 + 3, // made, deleted by the test, made, deleted
	}
	for _, own := range builtin.APIServices(s.kinds.Set()) {
		if _, ok := want[own.Name]; !ok {
			want[own.Name] = 1
		}
	}
	if diff := cmp.Diff(want, writes); diff != "" {
		t.Errorf("writes (-want +got) of %v:\n%s", slices.Sorted(maps.Keys(writes)), diff)
	}
}

// A server that starts makes its own anew, once, and takes away what was an older one's.
func TestAPIServicesAtStart(t *testing.T) {
	dsn := "sqlite://" + t.TempDir() + "/plinth.db"
	s := start(t, Config{DSN: dsn})
	c := clientOf(t, s)
	c.do("DELETE", apiServices+"/v1.apps", "", 200)
	body := strings.ReplaceAll(c.do("GET", apiServices+"/v1.batch", "", 200), `"versionPriority":15`, `"versionPriority":16`)
	c.do("PUT", apiServices+"/v1.batch", body, 200)
	for name, label := range map[string]string{"v1.old": "onstart", "v1.gone": "true", "v1.mine": ""} {
		labels := `{"kube-aggregator.kubernetes.io/automanaged":"` + label + `"}`
		if label == "" {
			labels = "{}"
		}
		group := strings.TrimPrefix(name, "v1.")
		c.do("POST", apiServices, `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"`+name+`","labels":`+labels+`},
			"spec":{"group":"`+group+`","version":"v1","groupPriorityMinimum":1,"versionPriority":1}}`, 201)
	}
	apitest.Eventually(t, "what is kept always is deleted", func() bool { return c.service("v1.gone") == nil })
	if c.service("v1.apps") != nil || c.service("v1.batch").Spec.VersionPriority != 16 || c.service("v1.old") == nil {
		t.Error("what is kept at the start only was mended later")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	c = clientOf(t, start(t, Config{DSN: dsn}))
	apitest.Eventually(t, "what is kept at the start is mended", func() bool {
		return c.service("v1.apps") != nil && c.service("v1.batch").Spec.VersionPriority == 15 && c.service("v1.old") == nil
	})
	if c.service("v1.mine") == nil {
		t.Error("somebody's own was deleted")
	}
}
