package aggregator

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/plinth-io/plinth/server/apitest"
)

// elsewhere resolves every Service to one address.
type elsewhere struct{ url *url.URL }

func (e elsewhere) ResolveEndpoint(string, string, int32) (*url.URL, error) { return e.url, nil }

// documents answers with what is there for a path.
type documents struct {
	mu     sync.Mutex
	bodies map[string]string // by path; a first line ending in : is a header
	asked  []string
	rounds int
}

// since returns what was asked for since set, and how many rounds there were in all.
func (d *documents) since() ([]string, int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string{}, d.asked...), d.rounds
}

func (d *documents) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if who := r.Header.Get("X-Remote-User"); who != "system:kube-aggregator" {
		http.Error(w, who, http.StatusForbidden)
		return
	}
	asked := r.URL.Path
	if tag := r.Header.Get("If-None-Match"); tag != "" {
		asked += " unless " + tag
	}
	if d.asked = append(d.asked, asked); r.URL.Path == "/openapi/v3" {
		d.asked = d.asked[:len(d.asked)-1]
		d.rounds++ // it is always the last
	}
	body, ok := d.bodies[r.URL.Path]
	switch tag := `"` + fmt.Sprint(len(body)) + `"`; {
	case !ok:
		http.NotFound(w, r)
	case body == "503":
		http.Error(w, body, http.StatusServiceUnavailable)
	case strings.Contains(body, "APIGroupDiscoveryList") && r.Header.Get("If-None-Match") == tag:
		w.WriteHeader(http.StatusNotModified)
	case strings.Contains(body, "APIGroupDiscoveryList"):
		w.Header().Set("ETag", tag)
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		fmt.Fprint(w, body)
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, body)
	}
}

func (d *documents) set(bodies map[string]string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bodies, d.asked = bodies, nil
}

func aggregatedDocument(resources ...string) string {
	var list []string
	for _, r := range resources {
		list = append(list, `{"resource":"`+r+`","scope":"Cluster","verbs":["get"],"subresources":[{"subresource":"status","verbs":["get"]}]}`)
	}
	return `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[
		{"metadata":{"name":"one.example.com"},"versions":[{"version":"v1","resources":[` + strings.Join(list, ",") + `]}]}]}`
}

const classicDocument = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"one.example.com/v1","resources":[
	{"name":"classics","singularName":"classic","kind":"Classic","verbs":["get"]},{"name":"classics/status","kind":"Classic","verbs":["get"]}]}`

// What discovery shows of a server that changes its mind. The poll is woken by changes of
// the object, as it is by time.
func TestPoll(t *testing.T) {
	d := &documents{}
	server := httptest.NewTLSServer(d)
	defer server.Close()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := New(elsewhere{at}, func() (*tls.Certificate, error) { return &tls.Certificate{}, nil }, nil)
	s.pollAgain = pollEvery // so that only a change has the server asked
	object := func(name string, generation int64) *apiregistration.APIService {
		gv := groupVersion(name)
		return &apiregistration.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: name, Generation: generation},
			Spec: apiregistration.APIServiceSpec{
				Group: gv.Group, Version: gv.Version, InsecureSkipTLSVerify: true,
				Service: &apiregistration.ServiceReference{Namespace: "ns", Name: "ext"},
			},
		}
	}
	s.Put(object("v1.one.example.com", 0))
	s.Put(object("v1.two.example.com", 0))
	if diff := cmp.Diff([]string{"one.example.com/v1 Stale", "two.example.com/v1 Stale"}, shown(s)); diff != "" {
		t.Errorf("before anybody was asked (-want +got):\n%s", diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { s.Poll(ctx) })

	tag := func(body string) string { return fmt.Sprintf(" unless %q", fmt.Sprint(len(body))) }
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, rounds := d.since(); rounds == 1 {
			break
		} else if time.Since(begun) > 2*time.Minute {
			t.Fatal("nobody was asked")
		}
	}
	const index = `{"paths":{"apis":{"serverRelativeURL":"/openapi/v3/apis?hash=0"},
		"apis/one.example.com/v1":{"serverRelativeURL":"/openapi/v3/apis/one.example.com/v1?hash=1"},
		"apis/two.example.com/v1":{"serverRelativeURL":"https://elsewhere.example.com/"},
		"apis/apps/v1":{"serverRelativeURL":"/openapi/v3/apis/apps/v1?hash=2"}}}`
	modern, other := aggregatedDocument("things", "others"), aggregatedDocument("olds")
	for i, test := range []struct {
		name   string
		bodies map[string]string
		want   []string
		asked  []string
	}{
		{"an aggregated document that has one of the two", map[string]string{"/apis": modern},
			[]string{"one.example.com/v1 Current things others", "two.example.com/v1 Current"}, []string{"/apis"}},
		{"the same", map[string]string{"/apis": modern},
			[]string{"one.example.com/v1 Current things others", "two.example.com/v1 Current"}, []string{"/apis" + tag(modern)}},
		{"unavailable", map[string]string{"/apis": "503"},
			[]string{"one.example.com/v1 Stale things others", "two.example.com/v1 Stale"}, []string{"/apis" + tag(modern)}},
		{"another document", map[string]string{"/apis": other},
			[]string{"one.example.com/v1 Current olds", "two.example.com/v1 Current"}, []string{"/apis" + tag(modern)}},
		{"garbage", map[string]string{"/apis": "APIGroupDiscoveryList {"},
			[]string{"one.example.com/v1 Stale olds", "two.example.com/v1 Stale"}, []string{"/apis" + tag(other)}},
		{"classic documents", map[string]string{"/apis/one.example.com/v1": classicDocument},
			[]string{"one.example.com/v1 Current classics", "two.example.com/v1 Stale"},
			[]string{"/apis" + tag(other), "/apis/one.example.com/v1", "/apis/two.example.com/v1"}},
		{"nothing", nil,
			[]string{"one.example.com/v1 Stale classics", "two.example.com/v1 Stale"},
			[]string{"/apis", "/apis/one.example.com/v1", "/apis/two.example.com/v1"}},
	} {
		if test.bodies != nil {
			test.bodies["/openapi/v3"] = index
		}
		d.set(test.bodies)
		s.Put(object("v1.one.example.com", int64(i+1)))
		var diff string
		for begun := time.Now(); time.Since(begun) < 2*time.Minute; time.Sleep(time.Millisecond) {
			asked, rounds := d.since()
			if diff = cmp.Diff(test.want, shown(s)) + cmp.Diff(test.asked, asked) + cmp.Diff(i+2, rounds); diff == "" {
				break
			}
		}
		// Only of group versions that are its own, and only at itself.
		want := map[string]string{"apis/one.example.com/v1": "/openapi/v3/apis/one.example.com/v1?hash=1"}
		if test.bodies == nil {
			want = map[string]string{} // it says that it has none
		}
		diff += cmp.Diff(want, s.Discovered().Documents)
		if diff != "" {
			t.Fatalf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	s.Remove("v1.one.example.com")
	if diff := cmp.Diff([]string{"two.example.com/v1 Stale"}, shown(s)); diff != "" {
		t.Errorf("after one was removed (-want +got):\n%s", diff)
	}
}

// TestPollAgain: a server that has failed is asked again soon, without a change of its object.
func TestPollAgain(t *testing.T) {
	d := &documents{bodies: map[string]string{"/apis": "503"}}
	server := httptest.NewTLSServer(d)
	defer server.Close()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := newServices(t, elsewhere{at})
	s.pollAgain = time.Millisecond
	s.Put(remote("v1.one.example.com"))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { s.Poll(ctx) })
	apitest.Eventually(t, "it is asked several times", func() bool { _, rounds := d.since(); return rounds > 2 })
	d.set(map[string]string{"/apis": aggregatedDocument("things")})
	want := []string{"one.example.com/v1 Current things"}
	apitest.Eventually(t, "what it serves is known", func() bool { return slices.Equal(shown(s), want) })
	asked, _ := d.since()
	time.Sleep(20 * time.Millisecond)
	if again, _ := d.since(); len(again) > len(asked)+1 {
		t.Errorf("after its answer it was asked %d times", len(again)-len(asked))
	}
}

// shown sums up what is discovered.
func shown(s *Services) (list []string) {
	for _, v := range s.Discovered().Versions {
		line := v.Spec.Group + "/" + v.Spec.Version + " " + string(v.Discovery.Freshness)
		for _, r := range v.Discovery.Resources {
			line += " " + r.Resource
			if r.ResponseKind == nil || len(r.Subresources) != 1 || r.Subresources[0].ResponseKind == nil {
				line += " (incomplete)"
			}
		}
		list = append(list, line)
	}
	return list
}
