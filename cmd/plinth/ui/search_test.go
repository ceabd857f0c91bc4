package ui

import (
	"strings"
	"testing"
)

// TestSearch: objects and kinds are found by a part of their names, in all namespaces or one.
func TestSearch(t *testing.T) {
	b := newWorkbench(t)
	b.make("namespaces", "", `{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`)
	b.make("configmaps", "default", `{apiVersion: v1, kind: ConfigMap, metadata: {name: needle}}`)
	b.make("configmaps", "shop", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a-needle-b}}`)
	b.make("secrets", "shop", `{apiVersion: v1, kind: Secret, metadata: {name: needle-2}}`)
	b.open("search?q=NeeDle").is(200).has("3 found for", "objects/configmaps/default/needle\"", "objects/configmaps/shop/a-needle-b\"", "objects/secrets/shop/needle-2\"")
	b.open("search?q=needle&ns=shop").is(200).has("2 found for", "Search all namespaces").hasNot("objects/configmaps/default/needle")
	b.open("search?q=configm").is(200).has("ConfigMap", `href="/x/kinds/configmaps"`)
	b.open("search?q=").is(200).has("Write a part of a name")
	b.open("search?q=" + "%3Cscript%3Ealert(1)").is(200).has("Nothing has that in its name").hasNot("<script>alert")
	list := b.open("search?q=needle&json=1").is(200)
	if first, second := strings.Index(list.html, `"needle"`), strings.Index(list.html, `"needle-2"`); first < 0 || second < first {
		t.Errorf("the nearest name is not the first: %s", list.html)
	}
}

// TestSearchUnread: what the visitor may not list is said.
func TestSearchUnread(t *testing.T) {
	b := newWorkbench(t)
	b.make("configmaps", "default", `{apiVersion: v1, kind: ConfigMap, metadata: {name: needle}}`)
	b.as("nobody").open("search?q=needle").is(200).has("0 found for", "Not all was searched", `User "nobody" cannot list resource "configmaps"`)
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
