package ui

import "testing"

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
