package ui

import (
	"html"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestWorkInBrowser: the pages that change objects, and those that explain rights and kinds, can be used by everybody, in
// light and dark.
func TestWorkInBrowser(t *testing.T) {
	w := newWorkbench(t)
	rightsOf(w)
	web := w.make("deployments.v1.apps", "default", webApp)
	w.make("configmaps", "default", child, "mid", "apps/v1", "Deployment", "web", web.GetUID())
	w.make("customresourcedefinitions.v1.apiextensions.k8s.io", "", widgets, hostile)
	w.make("pods", "default", `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {nodeName: nowhere, containers: [{name: main, image: "main:1"}]}}`)
	b := tabAt(t, w.page.URL+"/x/", "")
	for _, theme := range []string{"light", "dark"} {
		b.theme(theme)
		for _, path := range []string{
			"objects/deployments.apps/default/web", "objects/deployments.apps/default/web/tree", "objects/deployments.apps/default/web/edit",
			"objects/deployments.apps/default/web/scale", "objects/deployments.apps/default/web/restart", "objects/deployments.apps/default/web/delete",
			"objects/namespaces/-/default/tree", "objects/pods/default/p/logs", "search?q=web", "rights", "rights?verb=get&what=secrets",
			"definitions", "definitions/widgets.example.com", "definitions/deployments.apps",
		} {
			b.open(path)
			b.wait(`!!document.querySelector("main h1")`)
			b.accessible()
		}
	}
	b.sound()
}

// TestSuggestions: while somebody types names come up, which the keys choose from.
func TestSuggestions(t *testing.T) {
	w := newWorkbench(t)
	w.make("configmaps", "default", `{apiVersion: v1, kind: ConfigMap, metadata: {name: needle-1}}`)
	w.make("configmaps", "default", `{apiVersion: v1, kind: ConfigMap, metadata: {name: needle-2}}`)
	b := tabAt(t, w.page.URL+"/x/", "")
	b.open("definitions")
	b.wait(`!!document.querySelector("#suggestions")`)
	b.keys("/")
	b.keys("needle")
	b.wait(`document.querySelectorAll("#suggestions:not([hidden]) li").length === 2`)
	b.accessible()
	b.keys("\u0301\u0301") // down, down
	b.wait(`document.querySelectorAll("#suggestions li")[1].getAttribute("aria-selected") === "true"`)
	b.keys("\r")
	b.wait(`location.pathname.endsWith("/objects/configmaps/default/needle-2")`)
	b.sound()
}

// TestEditInBrowser: a change by keys alone, from the object's page to the written one.
func TestEditInBrowser(t *testing.T) {
	w := newWorkbench(t)
	w.make("configmaps", "default", `{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {k: v}}`)
	b := tabAt(t, w.page.URL+"/x/", "")
	b.open("objects/configmaps/default/one/edit")
	b.wait(`!!document.querySelector("textarea")`)
	eval[int](b, `(() => { const t = document.querySelector("textarea"); t.focus(); const at = t.value.indexOf("k: v") + 4; t.setSelectionRange(at, at); return at; })()`)
	b.keys("\rnew: x")
	b.wait(`document.querySelector("textarea").value.includes("  k: v\n  new: x\n")`)
	eval[int](b, `document.querySelector("button[value=preview]").focus(), 1`)
	b.keys("\r")
	b.sees("What would change")
	b.accessible()
	eval[int](b, `document.querySelector("button[value=write]").focus(), 1`)
	b.keys("\r")
	b.sees("Written.")
	b.sound()
	if data := w.now("configmaps", "default", "one").Object["data"].(map[string]any); data["new"] != "x" {
		t.Errorf("data is %v", data)
	}
}

// TestHostileOwners: what somebody writes into owner references does not become another path of the API.
func TestHostileOwners(t *testing.T) {
	b := newWorkbench(t)
	b.make("configmaps", "default", `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, ownerReferences: [
  {apiVersion: v1, kind: Node, name: "../namespaces/kube-system", uid: u1}, {apiVersion: v1, kind: Namespace, name: "kube-system/../default", uid: u2}]}}`)
	b.open("objects/configmaps/default/c/tree").is(200).has("../namespaces/kube-system", "not there any more")
	b.open("kinds/configmaps?ns=..%2Fkube-system").is(400).has("is no name")
	b.open("objects/configmaps/default/..%2F..%2Fnodes").is(400)
}

// TestEditLargeNumbers: a number that nobody has touched stays as it is.
func TestEditLargeNumbers(t *testing.T) {
	b := newWorkbench(t)
	b.make("customresourcedefinitions.v1.apiextensions.k8s.io", "", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: sums.example.com}, spec: {group: example.com, scope: Namespaced,
  names: {plural: sums, singular: sum, kind: Sum}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {sum: {type: integer, format: int64}, k: {type: string}}}}}]}}`)
	var made bool
	for range 200 {
		if page := b.open("objects/sums.example.com/default/none"); page.code == 404 && !strings.Contains(page.html, "No such kind") {
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Sum", "metadata": map[string]any{"name": "one"}, "sum": int64(1700000000123456789), "k": "v"}}
			if _, err := b.of("sums.v1.example.com", "default").Create(t.Context(), o, metav1.CreateOptions{}); err == nil {
				made = true
				break
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	if !made {
		t.Fatal("the kind is not served")
	}
	page := b.open("objects/sums.example.com/default/one/edit").is(200).has("sum: 1700000000123456789")
	text := strings.Replace(html.UnescapeString(page.html[strings.Index(page.html, "apiVersion: example"):strings.Index(page.html, "</textarea>")]), "k: v", "k: w", 1)
	b.post("objects/sums.example.com/default/one/edit", "text", text, "rv", page.field("rv"), "step", "write").is(303)
	if o := b.now("sums.v1.example.com", "default", "one"); o.Object["sum"] != int64(1700000000123456789) || o.Object["k"] != "w" {
		t.Errorf("it became %v", o.Object)
	}
}
