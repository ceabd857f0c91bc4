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
