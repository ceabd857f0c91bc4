package ui

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// child is a ConfigMap that an object owns.
const child = `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, ownerReferences: [{apiVersion: %s, kind: %s, name: %s, uid: %s}]}}`

// TestTree: owners are above an object and dependents below it, each with a link; what happened to it is told.
func TestTree(t *testing.T) {
	b := newWorkbench(t)
	web := b.make("deployments.v1.apps", "default", webApp)
	mid := b.make("configmaps", "default", child, "mid", "apps/v1", "Deployment", "web", web.GetUID())
	b.make("configmaps", "default", child, "leaf", "v1", "ConfigMap", "mid", mid.GetUID())
	b.make("configmaps", "default", child, "stray", "apps/v1", "Deployment", "gone", "11111111-1111-1111-1111-111111111111")
	b.make("events", "default", `{apiVersion: v1, kind: Event, metadata: {name: e1}, type: Warning, reason: "R%s", message: %q, count: 7, lastTimestamp: "2026-01-02T03:04:05Z",
  involvedObject: {apiVersion: v1, kind: ConfigMap, name: mid, namespace: default, uid: %s}}`, "easons", hostile, mid.GetUID())
	b.make("events", "default", `{apiVersion: v1, kind: Event, metadata: {name: e2}, reason: Other, message: m, involvedObject: {apiVersion: v1, kind: ConfigMap, name: leaf, namespace: default, uid: x}}`)

	page := b.open("objects/configmaps/default/mid/tree").is(200)
	page.has(`href="/x/objects/deployments.apps/default/web/tree"`, `href="/x/objects/configmaps/default/leaf/tree"`, "0/3", "Reasons", hostile, ">7<")
	page.hasNot("stray", "Other", "<script>alert")
	b.open("objects/configmaps/default/stray/tree").is(200).has("gone", "not there any more")
	b.open("objects/deployments.apps/default/web/tree").is(200).has(">leaf</a>", ">mid</a>")
	b.open("objects/namespaces/-/default/tree").is(200).has("In this namespace", "<b>3</b> ConfigMap", "<b>1</b> Deployment")
}

// TestTreeOfThen: the tree of a moment has what was there then.
func TestTreeOfThen(t *testing.T) {
	b := newWorkbench(t)
	web := b.make("deployments.v1.apps", "default", webApp)
	last := b.make("configmaps", "default", child, "mid", "apps/v1", "Deployment", "web", web.GetUID())
	if err := b.of("configmaps", "default").Delete(b.Context(), "mid", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.open("objects/deployments.apps/default/web/tree").is(200).hasNot(">mid</a>")
	b.open("objects/deployments.apps/default/web/tree?at=" + last.GetResourceVersion()).is(200).has(">mid</a>")
}

// TestTreeUnread: a visitor is told of the kinds that he may not list.
func TestTreeUnread(t *testing.T) {
	b := newWorkbench(t)
	b.make("configmaps", "default", `{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}`)
	b.make("clusterroles.v1.rbac.authorization.k8s.io", "", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: look}, rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list]}]}`)
	b.make("clusterrolebindings.v1.rbac.authorization.k8s.io", "", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: look}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: look}, subjects: [{kind: User, name: eve}]}`)
	b.as("eve").open("objects/configmaps/default/one/tree").is(200).has("Not all could be read", `User "eve" cannot list resource "secrets"`, "cannot list resource \"events\"")
	b.as("nobody").open("objects/configmaps/default/one/tree").is(403).has(`User "nobody" cannot get resource "configmaps"`)
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
