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
func (b *workbench) createNotes() (revisions []string) {
	b.Helper()
	at := b.by("ann", configMaps, "default")
	first := b.create(at, "{apiVersion: v1, kind: ConfigMap, metadata: {name: notes}, data: {color: blue, size: large}}")
	bob := b.by("bob"+hostilePast, configMaps, "default")
	second := b.set(bob, "notes", "green", "data", "color")
	third := b.set(bob, "notes", hostilePast, "data", "text")
	fourth := b.set(at, "notes", map[string]any{"example.com/note": hostilePast}, "metadata", "annotations")
	for _, o := range []*unstructured.Unstructured{first, second, third, fourth} {
		revisions = append(revisions, o.GetResourceVersion())
	}
	return revisions
}

// TestTimeline: each version says who made it and what it changed, and none of what an object has becomes HTML.
func TestTimeline(t *testing.T) {
	b := newWorkbench(t)
	rv := b.createNotes()
	a := b.open(notes + "/timeline")
	a.is(200).has("kubernetes-admin as ann", "created it", "by-hand", "as bob&lt;script&gt;", `<code title="data.color">color</code>`, "metadata.annotations", "Undo the last change", `data-rv="`+rv[3]+`"`, "Nothing is older.", `<th scope="row">`)
	if n := strings.Count(a.html, `class="version `); n != 4 {
		t.Errorf("there are %d versions", n)
	}
	b.open(notes+"/timeline?rv="+rv[1]).is(200).has("<del>blue</del>", "<ins>green</ins>", "Undo this change", "Restore this version", "<mark>green</mark>", `aria-label="Difference"`)
	b.open(notes+"/timeline?view=side&rv="+rv[2]).is(200).has(`class="diff halves"`, "&lt;script&gt;alert")
	b.open(notes+"/timeline?view=yaml&rv="+rv[1]).is(200).has(`<table class="yaml"`, "green")
	b.open(notes+"/timeline?rv="+rv[0]).is(200).has("What it was then", "blue")
	b.open(notes+"/timeline?at="+rv[1]).is(200).has("You see what was", "green")
	b.open(notes+"/timeline?at=~2").is(200).has("You see what was", `id="version"`)
}

// TestTimelineCompare: two versions are compared with the older one first, whichever was chosen first.
func TestTimelineCompare(t *testing.T) {
	b := newWorkbench(t)
	rv := b.createNotes()
	for _, address := range []string{"from=" + rv[0] + "&rv=" + rv[3], "from=" + rv[3] + "&rv=" + rv[0]} {
		a := b.open(notes + "/timeline?" + address)
		a.is(200).has("revisions "+rv[0]+" and "+rv[3], "<del>blue</del>", "<ins>green</ins>", "Stop comparing")
	}
	b.open(notes + "/timeline?from=" + rv[1] + "&rv=" + rv[1]).is(200).has("Now choose another version")
}

// TestTimelinePart: a script gets the version alone.
func TestTimelinePart(t *testing.T) {
	b := newWorkbench(t)
	rv := b.createNotes()
	r := b.request(http.MethodGet, notes+"/timeline?rv="+rv[1], nil)
	r.Header.Set("X-Part", "version")
	a := b.do(r)
	a.is(200).has(`<section class="shown" id="version"`, "<del>blue</del>")
	a.hasNot("<html", "<main", `id="versions"`)
}

// TestTimelineLiveAddress: the newest versions are live from what they have seen on; a page of the past is not. Who may not
// watch is told once, and does not ask again.
func TestTimelineLiveAddress(t *testing.T) {
	b := newWorkbench(t)
	rv := b.createNotes()
	b.open(notes + "/timeline").is(200).has(`data-live="/x/live/rows/configmaps?fields=metadata.name%3Dnotes&amp;ns=default&amp;rv=`)
	for _, address := range []string{"?at=" + rv[1], "?at=1ms", "?until=" + rv[2]} {
		b.open(notes + "/timeline" + address).is(200).has(`data-live=""`)
	}
	b.as("eve").open("live/rows/configmaps?ns=default&fields=metadata.name%3Dnotes&rv="+rv[3]).is(200).has("event: refused", "forbidden")
}

// TestTimelineBad: what is no revision, or none yet, is said on a page with its frame.
func TestTimelineBad(t *testing.T) {
	b := newWorkbench(t)
	b.createNotes()
	b.open(notes+"/timeline?rv=x"+url.QueryEscape(hostilePast)).is(400).has("is no revision", "<nav")
	b.open(notes + "/timeline?rv=-5").is(400).has("is no revision")
	b.open(notes + "/timeline?rv=99999999").is(400).has("there is no revision 99999999")
	b.open(notes + "/timeline?from=x").is(200).has("is no revision")
	b.open("objects/configmaps/default/nobody/timeline").is(404).has("no change of it is kept")
	b.open("objects/nothings/default/notes/timeline").is(404).has("No such kind")
}

// TestTimelineStatus: changes of the status that follow each other are one row, until each is asked for.
func TestTimelineStatus(t *testing.T) {
	b := newWorkbench(t)
	at := b.by("ann", deployments, "default")
	b.create(at, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: web, image: "web:1"}]}}}}`)
	for i := range 3 {
		o, err := at.Get(context.Background(), "web", metav1.GetOptions{})
		b.must(err)
		b.must(unstructured.SetNestedField(o.Object, int64(i+7), "status", "observedGeneration"))
		_, err = at.UpdateStatus(context.Background(), o, metav1.UpdateOptions{})
		b.must(err)
	}
	b.set(at, "web", int64(4), "spec", "replicas")
	a := b.open("objects/deployments.apps/default/web/timeline")
	a.is(200).has("3 changes of the status")
	if n := strings.Count(a.html, `class="version `); n != 3 {
		t.Errorf("there are %d rows, not 3", n)
	}
	a = b.open("objects/deployments.apps/default/web/timeline?status=1")
	if n := strings.Count(a.html, `class="version `); n != 5 {
		t.Errorf("there are %d rows, not 5", n)
	}
}

var olderLink = regexp.MustCompile(`href="/x/([^"]*until=[^"]*)"`)

// TestTimelinePages: a long list comes in pages, which have each version once, and a version of another page is found.
func TestTimelinePages(t *testing.T) {
	b := newWorkbench(t)
	at := b.by("ann", configMaps, "default")
	o := b.create(at, "{apiVersion: v1, kind: ConfigMap, metadata: {name: notes}, data: {k: first}}")
	first, err := o.GetResourceVersion(), error(nil)
	for i := range 129 {
		b.must(unstructured.SetNestedField(o.Object, fmt.Sprint(i), "data", "k"))
		o, err = at.Update(context.Background(), o, metav1.UpdateOptions{})
		b.must(err)
	}
	row := regexp.MustCompile(`class="version [^>]*data-rv="([0-9]+)"`)
	a := b.open(notes + "/timeline")
	all := row.FindAllStringSubmatch(a.html, -1)
	link := olderLink.FindStringSubmatch(a.html)
	if len(all) != 100 || link == nil {
		t.Fatalf("the first page has %d versions, and the link %q", len(all), link)
	}
	a = b.open(strings.ReplaceAll(link[1], "&amp;", "&"))
	a.is(200).has("Newest versions", "Nothing is older.")
	all = append(all, row.FindAllStringSubmatch(a.html, -1)...)
	seen := map[string]bool{}
	for _, m := range all {
		seen[m[1]] = true
	}
	if len(all) != 130 || len(seen) != 130 {
		t.Errorf("the pages have %d versions, of which %d are different", len(all), len(seen))
	}
	b.open(notes+"/timeline?rv="+first).is(200).has(`data-rv="`+first+`" aria-current="true"`, "Newest versions")
}

// TestTimelineForgotten: what is not kept any longer is said.
func TestTimelineForgotten(t *testing.T) {
	b := newWorkbench(t)
	b.createNotes()
	c, err := past.New(b.server.Config, nil)
	b.must(err)
	kind, err := c.Kinds.Find("configmaps")
	b.must(err)
	_, err = c.History.Forget(context.Background(), kind.In("default", "notes"))
	b.must(err)
	b.open(notes+"/timeline").is(200).has("What was before is not kept any longer", "nobody knows what this changed", "This is the whole object after it")
}

// TestTimelineGone: an object that was deleted has a timeline, and so has one whose kind is gone.
func TestTimelineGone(t *testing.T) {
	b := newWorkbench(t)
	rv := b.createNotes()
	b.must(b.by("carol", configMaps, "default").Delete(context.Background(), "notes", metav1.DeleteOptions{}))
	b.open(notes+"/timeline").is(200).has(`<span class="badge no">deleted</span>`, "as carol", "deleted it", "Bring it back", "What it was in the end")
	b.open(notes+"/timeline?rv="+rv[1]).is(200).has("Bring it back as it was here", "undelete?to="+rv[1])

	definitions := b.by("", schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, "")
	b.create(definitions, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: fleets.example.com}, spec: {group: example.com, scope: Namespaced, names: {plural: fleets, kind: Fleet}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`)
	fleets := b.by("ann", schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "fleets"}, "default")
	b.eventually(func() bool {
		_, err := fleets.Create(context.Background(), &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Fleet", "metadata": map[string]any{"name": "ships"}, "ships": "many"}}, metav1.CreateOptions{})
		return err == nil
	})
	b.must(definitions.Delete(context.Background(), "fleets.example.com", metav1.DeleteOptions{}))
	b.eventually(func() bool {
		_, err := definitions.Get(context.Background(), "fleets.example.com", metav1.GetOptions{})
		return err != nil
	})
	b.eventually(func() bool {
		return strings.Contains(b.open("objects/fleets.example.com/default/ships/timeline").html, "deleted it")
	})
	b.open("objects/fleets.example.com/default/ships/timeline").is(200).has(`<span class="badge no">deleted</span>`, "many")
}

// eventually waits until something is so.
func (b *workbench) eventually(is func() bool) {
	b.Helper()
	for begin := time.Now(); time.Since(begin) < 2*time.Minute; time.Sleep(50 * time.Millisecond) {
		if is() {
			return
		}
	}
	b.Fatal("it never was so")
}

// TestTimelineSecret: no page shows the values of a Secret before they are asked for, and all show that they differ.
func TestTimelineSecret(t *testing.T) {
	b := newWorkbench(t)
	at := b.by("ann", secrets, "default")
	b.create(at, `{apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {password: "geheim-1"}}`)
	b.set(at, "login", map[string]any{"password": "Z2VoZWltLTI="}, "data") // geheim-2
	one, two := "Z2VoZWltLTE=", "Z2VoZWltLTI="
	const login = "objects/secrets/default/login"
	for _, page := range []string{"/timeline", "/timeline?view=side", "/timeline?view=yaml", "/blame", "/undo"} {
		a := b.open(login + page)
		a.is(200).has("••••••")
		a.hasNot(one, two)
	}
	b.open(login+"/timeline").is(200).has("••••••", "another, 2")
	b.open(login+"/timeline?reveal=1").is(200).has(one[:9], two[:9])
	b.open(login + "/blame?reveal=1").is(200).has(two)
	b.must(at.Delete(context.Background(), "login", metav1.DeleteOptions{}))
	for _, page := range []string{"/timeline", "/undelete", "/blame"} {
		a := b.open(login + page)
		a.is(200).has("••••••")
		a.hasNot(one, two)
	}
}

// TestNoRights: who may not read an object does not see its past either.
func TestNoRights(t *testing.T) {
	b := newWorkbench(t)
	b.createNotes()
	b = b.as("eve")
	for _, page := range []string{"/timeline", "/blame", "/undo", "/undelete"} {
		a := b.open(notes + page)
		if a.code != 403 {
			t.Errorf("%s answers with %d", page, a.code)
		}
		a.hasNot("green", "blue")
	}
	a := b.open("trash")
	a.is(403).has("forbidden")
}

// TestNoHistory: against a server without a history the pages say so.
func TestNoHistory(t *testing.T) {
	b := newWorkbench(t)
	b.createNotes()
	b.door.config = b.withoutHistory()
	b.open("objects/configmaps/default/notes").is(200).has("green")
	for _, page := range []string{notes + "/timeline", notes + "/blame", notes + "/undo", "trash"} {
		b.open(page).is(501).has("This server keeps no history", "<nav")
	}
}

// withoutHistory is the configuration for a server that has all but the history.
func (b *workbench) withoutHistory() *clientrest.Config {
	b.Helper()
	to, err := url.Parse(b.server.Config.Host)
	b.must(err)
	transport, err := clientrest.TransportFor(b.server.Config)
	b.must(err)
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
	b.Cleanup(s.Close)
	return &clientrest.Config{Host: s.URL}
}
