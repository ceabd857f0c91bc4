package ui

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// hostilePast is what must not become HTML, in every field that has it.
const hostilePast = `<script>alert("1")</script>'"><img src=x onerror=alert(1)>`

const notes = "objects/configmaps/default/notes"

// createNotes makes a ConfigMap of four versions, with texts that are hostilePast where they may be.
func (f *pastFixture) createNotes() (revisions []string) {
	f.Helper()
	at := f.of("ann", configMaps, "default")
	first := f.create(at, "{apiVersion: v1, kind: ConfigMap, metadata: {name: notes}, data: {color: blue, size: large}}")
	bob := f.of("bob"+hostilePast, configMaps, "default")
	second := f.set(bob, "notes", "green", "data", "color")
	third := f.set(bob, "notes", hostilePast, "data", "text")
	fourth := f.set(at, "notes", map[string]any{"example.com/note": hostilePast}, "metadata", "annotations")
	for _, o := range []*unstructured.Unstructured{first, second, third, fourth} {
		revisions = append(revisions, o.GetResourceVersion())
	}
	return revisions
}

// TestTimeline: each version says who made it and what it changed, and none of what an object has becomes HTML.
func TestTimeline(t *testing.T) {
	f := startPast(t)
	rv := f.createNotes()
	a := f.get(notes + "/timeline")
	f.wants(a, 200, "kubernetes-admin as ann", "created it", "by-hand", "as bob&lt;script&gt;", `<code title="data.color">color</code>`,
		"metadata.annotations", "Undo the last change", `data-rv="`+rv[3]+`"`, "Nothing is older.", `<th scope="row">`)
	if n := strings.Count(a.body, `class="version `); n != 4 {
		t.Errorf("there are %d versions", n)
	}
	f.wants(f.get(notes+"/timeline?rv="+rv[1]), 200, "<del>blue</del>", "<ins>green</ins>", "Undo to here", "<mark>green</mark>", `aria-label="Difference"`)
	f.wants(f.get(notes+"/timeline?view=side&rv="+rv[2]), 200, `class="diff halves"`, "&lt;script&gt;alert")
	f.wants(f.get(notes+"/timeline?view=yaml&rv="+rv[1]), 200, `<table class="yaml"`, "green")
	f.wants(f.get(notes+"/timeline?rv="+rv[0]), 200, "What it was then", "blue")
	f.wants(f.get(notes+"/timeline?at="+rv[1]), 200, "You see what was", "green")
	f.wants(f.get(notes+"/timeline?at=~2"), 200, "You see what was", `id="version"`)
}

// TestTimelineCompare: two versions are compared with the older one first, whichever was chosen first.
func TestTimelineCompare(t *testing.T) {
	f := startPast(t)
	rv := f.createNotes()
	for _, address := range []string{"from=" + rv[0] + "&rv=" + rv[3], "from=" + rv[3] + "&rv=" + rv[0]} {
		a := f.get(notes + "/timeline?" + address)
		f.wants(a, 200, "revisions "+rv[0]+" and "+rv[3], "<del>blue</del>", "<ins>green</ins>", "Stop comparing")
	}
	f.wants(f.get(notes+"/timeline?from="+rv[1]+"&rv="+rv[1]), 200, "Now choose another version")
}

// TestTimelinePart: a script gets the version alone.
func TestTimelinePart(t *testing.T) {
	f := startPast(t)
	rv := f.createNotes()
	r := httptest.NewRequest(http.MethodGet, "/x/"+notes+"/timeline?rv="+rv[1], nil)
	r.Header.Set("X-Part", "1")
	a := f.do(r)
	f.wants(a, 200, `<section class="shown" id="version"`, "<del>blue</del>")
	f.lacks(a, "<html", "<main", `id="versions"`)
}

// TestTimelineBad: what is no revision, or none yet, is said on a page with its frame.
func TestTimelineBad(t *testing.T) {
	f := startPast(t)
	f.createNotes()
	f.wants(f.get(notes+"/timeline?rv=x"+url.QueryEscape(hostilePast)), 400, "is no revision", "<nav")
	f.wants(f.get(notes+"/timeline?rv=-5"), 400, "is no revision")
	f.wants(f.get(notes+"/timeline?rv=99999999"), 400, "there is no revision 99999999")
	f.wants(f.get(notes+"/timeline?from=x"), 200, "is no revision")
	f.wants(f.get("objects/configmaps/default/nobody/timeline"), 404, "no change of it is kept")
	f.wants(f.get("objects/nothings/default/notes/timeline"), 404, "No such kind")
}

// TestTimelineStatus: changes of the status that follow each other are one row, until each is asked for.
func TestTimelineStatus(t *testing.T) {
	f := startPast(t)
	at := f.of("ann", deployments, "default")
	f.create(at, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: web, image: "web:1"}]}}}}`)
	for i := range 3 {
		o, err := at.Get(context.Background(), "web", metav1.GetOptions{})
		f.must(err)
		f.must(unstructured.SetNestedField(o.Object, int64(i+7), "status", "observedGeneration"))
		_, err = at.UpdateStatus(context.Background(), o, metav1.UpdateOptions{})
		f.must(err)
	}
	f.set(at, "web", int64(4), "spec", "replicas")
	a := f.get("objects/deployments.apps/default/web/timeline")
	f.wants(a, 200, "3 changes of the status")
	if n := strings.Count(a.body, `class="version `); n != 3 {
		t.Errorf("there are %d rows, not 3", n)
	}
	a = f.get("objects/deployments.apps/default/web/timeline?status=1")
	if n := strings.Count(a.body, `class="version `); n != 5 {
		t.Errorf("there are %d rows, not 5", n)
	}
}

var olderLink = regexp.MustCompile(`href="/x/([^"]*until=[^"]*)"`)

// TestTimelinePages: a long list comes in pages, which have each version once, and a version of another page is found.
func TestTimelinePages(t *testing.T) {
	f := startPast(t)
	at := f.of("ann", configMaps, "default")
	o := f.create(at, "{apiVersion: v1, kind: ConfigMap, metadata: {name: notes}, data: {k: first}}")
	first, err := o.GetResourceVersion(), error(nil)
	for i := range 129 {
		f.must(unstructured.SetNestedField(o.Object, fmt.Sprint(i), "data", "k"))
		o, err = at.Update(context.Background(), o, metav1.UpdateOptions{})
		f.must(err)
	}
	row := regexp.MustCompile(`class="version [^>]*data-rv="([0-9]+)"`)
	a := f.get(notes + "/timeline")
	all := row.FindAllStringSubmatch(a.body, -1)
	link := olderLink.FindStringSubmatch(a.body)
	if len(all) != 100 || link == nil {
		t.Fatalf("the first page has %d versions, and the link %q", len(all), link)
	}
	a = f.get(strings.ReplaceAll(link[1], "&amp;", "&"))
	f.wants(a, 200, "Newest versions", "Nothing is older.")
	all = append(all, row.FindAllStringSubmatch(a.body, -1)...)
	seen := map[string]bool{}
	for _, m := range all {
		seen[m[1]] = true
	}
	if len(all) != 130 || len(seen) != 130 {
		t.Errorf("the pages have %d versions, of which %d are different", len(all), len(seen))
	}
	f.wants(f.get(notes+"/timeline?rv="+first), 200, `data-rv="`+first+`" aria-current="true"`, "Newest versions")
}

// TestTimelineForgotten: what is not kept any longer is said.
func TestTimelineForgotten(t *testing.T) {
	f := startPast(t)
	f.createNotes()
	c, err := past.New(f.server.Config, nil)
	f.must(err)
	kind, err := c.Kinds.Find("configmaps")
	f.must(err)
	_, err = c.History.Forget(context.Background(), kind.In("default", "notes"))
	f.must(err)
	f.wants(f.get(notes+"/timeline"), 200, "What was before is not kept any longer", "nobody knows what this changed", "This is the whole object after it")
}

// TestTimelineGone: an object that was deleted has a timeline, and so has one whose kind is gone.
func TestTimelineGone(t *testing.T) {
	f := startPast(t)
	rv := f.createNotes()
	f.must(f.of("carol", configMaps, "default").Delete(context.Background(), "notes", metav1.DeleteOptions{}))
	f.wants(f.get(notes+"/timeline"), 200, `<span class="badge no">deleted</span>`, "as carol", "deleted it", "Bring it back", "What it was in the end")
	f.wants(f.get(notes+"/timeline?rv="+rv[1]), 200, "Bring it back as it was here", "undelete?to="+rv[1])

	definitions := f.of("", schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, "")
	f.create(definitions, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: fleets.example.com}, spec: {group: example.com, scope: Namespaced, names: {plural: fleets, kind: Fleet}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`)
	fleets := f.of("ann", schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "fleets"}, "default")
	f.eventually(func() bool {
		_, err := fleets.Create(context.Background(), &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Fleet", "metadata": map[string]any{"name": "ships"}, "ships": "many"}}, metav1.CreateOptions{})
		return err == nil
	})
	f.must(definitions.Delete(context.Background(), "fleets.example.com", metav1.DeleteOptions{}))
	f.eventually(func() bool {
		_, err := definitions.Get(context.Background(), "fleets.example.com", metav1.GetOptions{})
		return err != nil
	})
	f.eventually(func() bool {
		return strings.Contains(f.get("objects/fleets.example.com/default/ships/timeline").body, "deleted it")
	})
	f.wants(f.get("objects/fleets.example.com/default/ships/timeline"), 200, `<span class="badge no">deleted</span>`, "many")
}

// eventually waits until something is so.
func (f *pastFixture) eventually(is func() bool) {
	f.Helper()
	for begin := time.Now(); time.Since(begin) < 2*time.Minute; time.Sleep(50 * time.Millisecond) {
		if is() {
			return
		}
	}
	f.Fatal("it never was so")
}

// TestTimelineSecret: no page shows the values of a Secret before they are asked for, and all show that they differ.
func TestTimelineSecret(t *testing.T) {
	f := startPast(t)
	at := f.of("ann", secrets, "default")
	f.create(at, `{apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {password: "geheim-1"}}`)
	f.set(at, "login", map[string]any{"password": "Z2VoZWltLTI="}, "data") // geheim-2
	one, two := "Z2VoZWltLTE=", "Z2VoZWltLTI="
	const login = "objects/secrets/default/login"
	for _, page := range []string{"/timeline", "/timeline?view=side", "/timeline?view=yaml", "/blame", "/undo"} {
		a := f.get(login + page)
		f.wants(a, 200, "••••••")
		f.lacks(a, one, two)
	}
	f.wants(f.get(login+"/timeline"), 200, "••••••", "another, 2")
	f.wants(f.get(login+"/timeline?reveal=1"), 200, one[:9], two[:9])
	f.wants(f.get(login+"/blame?reveal=1"), 200, two)
	f.must(at.Delete(context.Background(), "login", metav1.DeleteOptions{}))
	for _, page := range []string{"/timeline", "/undelete", "/blame"} {
		a := f.get(login + page)
		f.wants(a, 200, "••••••")
		f.lacks(a, one, two)
	}
}

// TestNoRights: who may not read an object does not see its past either.
func TestNoRights(t *testing.T) {
	f := startPast(t)
	f.createNotes()
	f.door.config = f.as("eve")
	for _, page := range []string{"/timeline", "/blame", "/undo", "/undelete"} {
		a := f.get(notes + page)
		if a.code != 403 {
			t.Errorf("%s answers with %d", page, a.code)
		}
		f.lacks(a, "green", "blue")
	}
	a := f.get("trash")
	f.wants(a, 403, "forbidden")
}

// TestNoHistory: against a server without a history the pages say so.
func TestNoHistory(t *testing.T) {
	f := startPast(t)
	f.createNotes()
	f.door.config = f.withoutHistory()
	f.wants(f.get("objects/configmaps/default/notes"), 200, "green")
	for _, page := range []string{notes + "/timeline", notes + "/blame", notes + "/undo", "trash"} {
		f.wants(f.get(page), 501, "This server keeps no history", "<nav")
	}
}

// withoutHistory is the configuration for a server that has all but the history.
func (f *pastFixture) withoutHistory() *clientrest.Config {
	f.Helper()
	to, err := url.Parse(f.server.Config.Host)
	f.must(err)
	transport, err := clientrest.TransportFor(f.server.Config)
	f.must(err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport = transport
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/apis":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`)
		case strings.HasPrefix(r.URL.Path, "/apis/history.plinth.io"):
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(404)
			fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": "the server could not find the requested resource"}`)
		default:
			r.Header.Set("Accept", "application/json") // without aggregated discovery
			proxy.ServeHTTP(w, r)
		}
	}))
	f.Cleanup(s.Close)
	return &clientrest.Config{Host: s.URL}
}

// TestShortOf: the end of a field's name says what it is.
func TestShortOf(t *testing.T) {
	for field, want := range map[string]string{
		`spec.template.spec.containers[name="web"].image`:                 "image",
		`spec.template.spec.containers[name="a.b\"]."].env[name="X"]`:     `env[name="X"]`,
		`spec.template.spec.containers[name="web"].env[name="LOG"].value`: `env[name="LOG"].value`,
		`metadata.annotations.example.com/note`:                           "example.com/note",
		`data.app.properties`:                                             "app.properties",
		`value`:                                                           "value",
		``:                                                                "",
	} {
		if got := shortOf(field); got != want {
			t.Errorf("the short form of %s is %q, not %q", field, got, want)
		}
	}
}
