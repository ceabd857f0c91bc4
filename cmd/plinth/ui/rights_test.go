package ui

import "testing"

// rightsOf gives ann the right to read secrets named s in the namespace default, the group devs that to read pods
// everywhere, and the service account default/bot all of apps.
func rightsOf(b *workbench) {
	b.make("roles.v1.rbac.authorization.k8s.io", "default", `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: one-secret}, rules: [{apiGroups: [""], resources: [secrets], resourceNames: [s], verbs: [get]}]}`)
	b.make("rolebindings.v1.rbac.authorization.k8s.io", "default", `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: ann}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: one-secret}, subjects: [{kind: User, name: %q}]}`, "ann"+hostile)
	b.make("clusterroles.v1.rbac.authorization.k8s.io", "", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: pods}, rules: [{apiGroups: [""], resources: [pods, pods/log], verbs: [get, list]}, {nonResourceURLs: [/metrics], verbs: [get]}]}`)
	b.make("clusterrolebindings.v1.rbac.authorization.k8s.io", "", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: devs}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: pods}, subjects: [{kind: Group, name: devs}]}`)
	b.make("clusterroles.v1.rbac.authorization.k8s.io", "", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: apps}, rules: [{apiGroups: [apps], resources: ["*"], verbs: ["*"]}]}`)
	b.make("rolebindings.v1.rbac.authorization.k8s.io", "default", `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: bot}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: apps}, subjects: [{kind: ServiceAccount, name: bot}]}`)
	b.make("rolebindings.v1.rbac.authorization.k8s.io", "default", `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: lost}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: not-there}, subjects: [{kind: Group, name: devs}]}`)
}

// TestWhatMay: what somebody may do is told with the binding and the role that give it.
func TestWhatMay(t *testing.T) {
	b := newWorkbench(t)
	rightsOf(b)
	b.open("rights?kind=User&who=ann%3Cscript%3Ealert(%22x%22)%3C%2Fscript%3E%27%26").is(200).has("one-secret", "secrets", "in default", ">s<", "objects/rolebindings.rbac.authorization.k8s.io/default/ann").hasNot("<script>alert", "devs")
	b.open("rights?kind=User&who=carl&groups=devs,others").is(200).has("pods, pods/log", "/metrics", "everywhere", "as Group devs", "not-there", "is not there")
	b.open("rights?kind=ServiceAccount&who=default/bot").is(200).has("everything of apps", "all verbs", "system:serviceaccounts:default")
	b.open("rights?kind=ServiceAccount&who=bot").is(400).has("NAMESPACE/NAME")
	b.open("rights?kind=ServiceAccount&who=bot&ns=default").is(200).has("everything of apps")
	b.open("rights?kind=Group&who=devs").is(200).has("pods, pods/log").hasNot("everything of apps")
	b.open("rights").is(200).has("system:masters may do everything", "What the server says you may do in default")
}

// TestWhoMay: who may do something is found through rules, wildcards and names, and the visitor's own right is told.
func TestWhoMay(t *testing.T) {
	b := newWorkbench(t)
	rightsOf(b)
	b.open("rights?verb=get&what=secrets").is(200).has("ann"+hostile, ">s</td>", "you may").hasNot("<script>alert")
	b.open("rights?verb=get&what=secrets&name=s").is(200).has("ann" + hostile)
	b.open("rights?verb=get&what=secrets&name=other").is(200).hasNot("ann&lt;")
	b.open("rights?verb=list&what=secrets").is(200).hasNot("ann&lt;")
	b.open("rights?verb=delete&what=deployments").is(200).has("default/bot", "/x/rights?kind=ServiceAccount&who=default%2Fbot").hasNot(">devs")
	b.open("rights?verb=delete&what=deployments&ns=kube-system").is(200).hasNot("default/bot")
	b.open("rights?verb=get&what=pods/log").is(200).has(" devs</a>")
	b.open("rights?verb=get&what=/metrics").is(200).has(" devs</a>")
	b.open("rights?verb=get&what=nodes").is(200).hasNot("default/bot")
	b.open("rights?verb=get&what=nothings").is(404).has("does not have the type")
}

// TestRightsBlind: who may not read RBAC hears so, and what he himself may do.
func TestRightsBlind(t *testing.T) {
	b := newWorkbench(t)
	rightsOf(b)
	eve := b.as("eve")
	eve.open("rights").is(200).has("You may not read who has rights", `User "eve" cannot list resource "clusterrolebindings"`, "selfsubjectaccessreviews")
	eve.open("rights?verb=get&what=pods").is(200).has("you may not").hasNot("devs")
	eve.open("rights?verb=create&what=selfsubjectaccessreviews").is(200).has("you may", "system:basic-user")
}
