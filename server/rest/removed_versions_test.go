package rest_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizerfactory"

	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/rest"
)

// TestRemovedVersions goes through all versions that are served on request only. An object that is
// written in a removed version can be read in the version that replaced it, and the other way
// round.
// https://kubernetes.io/docs/reference/using-api/deprecation-guide/
func TestRemovedVersions(t *testing.T) {
	all, err := builtin.RemovedAPIs([]string{"all"})
	if err != nil {
		t.Fatal(err)
	}
	aloneAndShared(t, awayOnPostgres, rest.Options{}, func(t *testing.T, h *harness) {
		h.serveRemoved(all)
		seen, request := map[string]bool{}, certificateRequest(t)
		for _, row := range removedRows {
			row.rest = strings.ReplaceAll(row.rest, "REQUEST", request)
			t.Run(row.name(), func(t *testing.T) {
				h := *h
				h.t = t
				h.removedVersion(row)
			})
			seen[row.version+"/"+row.resource] = true
		}
		for _, r := range all {
			name := r.GVK.GroupVersion().String() + "/" + r.Resource.Resource
			if k := h.kinds.Lookup(r.Resource.Group, r.Resource.Version, r.Resource.Resource); k.Virtual == nil && !seen[name] {
				t.Errorf("no row for %s", name)
			}
		}
	})
}

func (h *harness) serveRemoved(wanted []builtin.Removed) {
	h.kinds.Replace(h.kinds.Set().Kinds, builtin.Kinds(builtin.Options{
		Authorizer: authorizerfactory.NewAlwaysAllowAuthorizer(), Removed: wanted,
	}))
}

// TestRemovedScales changes replicas and status through the subresources of removed versions.
func TestRemovedScales(t *testing.T) {
	all, err := builtin.RemovedAPIs([]string{"apps/v1beta1", "apps/v1beta2", "extensions/v1beta1"})
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(t, rest.Options{}, nothingStays)
	h.serveRemoved(all)
	for _, row := range removedRows {
		k := h.kinds.Lookup(strings.Split(row.version, "/")[0], strings.Split(row.version, "/")[1], row.resource)
		if k == nil || k.Subresources["scale"] == nil {
			continue
		}
		t.Run(row.name(), func(t *testing.T) {
			h := *h
			h.t = t
			old, now := row.path(row.version)+"/one", row.path(row.now)+"/one"
			h.do("POST", row.path(row.version), row.object()).want(201)
			scale := h.do("GET", old+"/scale", "").want(200)
			if scale.get("kind") != "Scale" || scale.get("apiVersion") != row.version || scale.get("status", "selector", "app") != "a" {
				t.Errorf("scale: %s", scale.body)
			}
			h.warned(row, scale)
			h.do("PUT", old+"/scale", edit(t, scale.body, func(obj map[string]any) {
				obj["spec"] = map[string]any{"replicas": 4}
			})).want(200)
			h.do("PATCH", old+"/status", `{"status":{"replicas":4}}`, "Content-Type", "application/merge-patch+json").want(200)
			read := h.do("GET", now, "").want(200)
			if read.get("spec", "replicas") != "4" || read.get("status", "replicas") != "4" {
				t.Errorf("scaled: %s", read.body)
			}
			managers := ""
			for _, e := range managedFields(t, read.body) {
				managers += fmt.Sprintln(e.Operation, e.APIVersion, e.Subresource)
			}
			for _, want := range []string{"scale", "status", ""} {
				if !strings.Contains(managers, "Update "+row.version+" "+want+"\n") {
					t.Errorf("managers:\n%s", managers)
				}
			}
			h.do("PUT", old, edit(t, h.do("GET", old, "").body, func(obj map[string]any) {
				obj["status"] = map[string]any{"replicas": 9}
			})).want(200)
			for _, e := range managedFields(t, h.do("GET", now, "").want(200).body) {
				if e.Subresource == "" && strings.Contains(e.FieldsV1.GetRawString(), "f:status") {
					t.Errorf("manages a status that it cannot write: %s", e.FieldsV1.GetRawString())
				}
			}
			h.do("PATCH", now+"/scale", `{"spec":{"replicas":5}}`, "Content-Type", "application/merge-patch+json").want(200)
			if again := h.do("GET", old+"/scale", "").want(200); again.get("spec", "replicas") != "5" {
				t.Errorf("scaled again: %s", again.body)
			}
			h.do("DELETE", old+"?propagationPolicy=Background", "").want(200)
		})
	}
}

// TestRemovedReviews creates reviews, which are not stored, in removed versions.
func TestRemovedReviews(t *testing.T) {
	all, err := builtin.RemovedAPIs([]string{"authentication.k8s.io/v1alpha1", "authentication.k8s.io/v1beta1", "authorization.k8s.io/v1beta1"})
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(t, rest.Options{}, nothingStays)
	h.serveRemoved(all)
	for _, c := range []struct{ path, kind, spec, field, want string }{
		{"authorization.k8s.io/v1beta1/subjectaccessreviews", "SubjectAccessReview", `{"user":"a","group":["b"],"resourceAttributes":{"verb":"get","resource":"pods"}}`, "spec.group.0", "b"},
		{"authorization.k8s.io/v1beta1/selfsubjectaccessreviews", "SelfSubjectAccessReview", `{"resourceAttributes":{"verb":"get","resource":"pods"}}`, "status.allowed", "true"},
		{"authorization.k8s.io/v1beta1/selfsubjectrulesreviews", "SelfSubjectRulesReview", `{"namespace":"default"}`, "status.incomplete", "false"},
		{"authorization.k8s.io/v1beta1/namespaces/default/localsubjectaccessreviews", "LocalSubjectAccessReview", `{"user":"a","resourceAttributes":{"namespace":"default","verb":"get","resource":"pods"}}`, "status.allowed", "true"},
		{"authentication.k8s.io/v1beta1/selfsubjectreviews", "SelfSubjectReview", `{}`, "status.userInfo.username", "tester"},
		{"authentication.k8s.io/v1alpha1/selfsubjectreviews", "SelfSubjectReview", `{}`, "status.userInfo.username", "tester"},
		{"authentication.k8s.io/v1beta1/tokenreviews", "TokenReview", `{"token":"x"}`, "spec.token", "x"},
	} {
		version := strings.Join(strings.Split(c.path, "/")[:2], "/")
		metadata := "{}"
		if strings.Contains(c.path, "/namespaces/") {
			metadata = `{"namespace":"default"}`
		}
		a := h.do("POST", "/apis/"+c.path, fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":%s,"spec":%s}`, version, c.kind, metadata, c.spec)).want(201)
		if a.get("apiVersion") != version || a.get(strings.Split(c.field, ".")...) != c.want {
			t.Errorf("%s: want %s=%s: %s", c.path, c.field, c.want, a.body)
		}
		h.warned(removedRow{version: version, kind: c.kind, now: strings.Split(version, "/")[0] + "/v1"}, a)
	}
}

func (row removedRow) name() string { return row.version + "/" + row.resource }

// path of the collection in a version.
func (row removedRow) path(version string) string {
	if row.cluster {
		return "/apis/" + version + "/" + row.resource
	}
	return "/apis/" + version + "/namespaces/default/" + row.resource
}

func (row removedRow) called() string {
	if row.fixed != "" {
		return row.fixed
	}
	return "one"
}

func (row removedRow) object() string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q},%s}`, row.version, row.kind, row.called(), row.rest)
}

func (h *harness) removedVersion(row removedRow) {
	h.t.Helper()
	old, now, name := row.path(row.version), row.path(row.now), row.called()
	created := h.do("POST", old, row.object()).want(201)
	h.warned(row, created)
	for path, want := range map[string]string{old: row.version, now: row.now} {
		read := h.do("GET", path+"/"+name, "").want(200)
		if read.get("apiVersion") != want || read.get("kind") != row.kind || read.get("metadata", "uid") != created.get("metadata", "uid") {
			h.t.Errorf("%s: %s", path, read.body)
		}
	}
	h.oldAndNew(row, old+"/"+name, now+"/"+name)
	h.listedAndWatched(row, old, name, created.get("metadata", "resourceVersion"))
	h.changedInOld(row, old+"/"+name, now+"/"+name)
	h.do("DELETE", old+"/"+name+"?propagationPolicy=Background", "").want(200)
	if row.kind == "CustomResourceDefinition" { // waits for a controller that does not run here
		h.do("PATCH", old+"/"+name, `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json").want(200)
	}
	h.do("GET", now+"/"+name, "").want(404)
}

// warned checks the Warning header of an answer in a removed version.
func (h *harness) warned(row removedRow, a answer) {
	h.t.Helper()
	text := strings.Join(a.head.Values("Warning"), "\n")
	if !strings.Contains(text, row.version+" "+row.kind+" was removed in v1.") || !strings.Contains(text, "; use "+row.now+" "+row.kind) {
		h.t.Errorf("warning %q", text)
	}
}

// oldAndNew reads a field that the two versions have at different paths.
func (h *harness) oldAndNew(row removedRow, old, now string) {
	h.t.Helper()
	for path, want := range map[string]string{old: row.old, now: row.new} {
		where, value, ok := strings.Cut(want, "=")
		if !ok {
			continue
		}
		if a := h.do("GET", path, ""); a.get(strings.Split(where, ".")...) != value {
			h.t.Errorf("%s: want %s: %s", path, want, a.body)
		}
	}
	h.warned(row, h.do("GET", old, "").want(200))
	table := h.do("GET", old, "", "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").want(200)
	if table.get("kind") != "Table" || table.get("rows", "0", "object", "metadata", "name") == "" {
		h.t.Errorf("table: %s", table.body)
	}
	proto := h.do("GET", old, "", "Accept", "application/vnd.kubernetes.protobuf").want(200)
	if !strings.HasPrefix(proto.body, "k8s\x00") || !strings.Contains(proto.body[:60], row.version) {
		h.t.Errorf("protobuf: %q", proto.body[:60])
	}
}

func (h *harness) listedAndWatched(row removedRow, old, name, revision string) {
	h.t.Helper()
	list := h.do("GET", old+"?fieldSelector=metadata.name="+name, "").want(200)
	if list.get("kind") != row.kind+"List" || list.get("apiVersion") != row.version || list.get("items", "0", "metadata", "name") != name {
		h.t.Errorf("list: %s", list.body)
	}
	h.warned(row, list)
	_, events := h.stream(old+"?watch=1&resourceVersion=0&fieldSelector=metadata.name="+name, "application/json", 1)
	if e := events[0]; e.get("type") != "ADDED" || e.get("object", "apiVersion") != row.version || e.get("object", "metadata", "resourceVersion") != revision {
		h.t.Errorf("watch: %s", e.body)
	}
	h.warned(row, events[0])
}

// changedInOld writes through the removed version by update, apply and each type of patch.
func (h *harness) changedInOld(row removedRow, old, now string) {
	h.t.Helper()
	live := h.do("GET", old, "").want(200)
	h.do("PUT", old, edit(h.t, live.body, func(obj map[string]any) {
		obj["metadata"].(map[string]any)["labels"] = map[string]any{"put": "1"}
	})).want(200)
	h.do("PATCH", old, `{"metadata":{"labels":{"merge":"1"}}}`, "Content-Type", "application/merge-patch+json").want(200)
	h.do("PATCH", old, `{"metadata":{"labels":{"strategic":"1"}}}`, "Content-Type", "application/strategic-merge-patch+json").want(200)
	h.do("PATCH", old, `[{"op":"add","path":"/metadata/labels/json","value":"1"}]`, "Content-Type", "application/json-patch+json").want(200)
	applied := h.do("PATCH", old+"?fieldManager=me&force=true", edit(h.t, row.object(), func(obj map[string]any) {
		obj["metadata"].(map[string]any)["labels"] = map[string]any{"apply": "1"}
	}), "Content-Type", "application/apply-patch+yaml").want(200)
	h.warned(row, applied)
	read := h.do("GET", now, "").want(200)
	if got := read.get("metadata", "labels"); got != `{"apply":"1","json":"1","merge":"1","put":"1","strategic":"1"}` {
		h.t.Errorf("labels %s", got)
	}
	managers := ""
	for _, e := range managedFields(h.t, read.body) {
		managers += fmt.Sprintln(e.Manager, e.Operation, e.APIVersion)
	}
	if !strings.Contains(managers, "me Apply "+row.version+"\n") || !strings.Contains(managers, "Update "+row.version+"\n") {
		h.t.Errorf("managers:\n%s", managers)
	}
	// An apply of today's version meets fields that are managed in the other.
	h.do("PATCH", now+"?fieldManager=other", edit(h.t, row.object(), func(obj map[string]any) {
		for key := range obj {
			if key != "kind" && key != "metadata" {
				delete(obj, key)
			}
		}
		obj["apiVersion"] = row.now
		obj["metadata"].(map[string]any)["labels"] = map[string]any{"apply": "1", "now": "1"}
	}), "Content-Type", "application/apply-patch+yaml").want(200)
}

// removedRow is an object in a version that was removed.
type removedRow struct {
	version, resource, kind string
	now                     string // the version that replaced it
	cluster                 bool   // not in a namespace
	fixed                   string // the only name that the object may have
	rest                    string // of the object, after its metadata
	old, new                string // a field in both, as PATH=VALUE
}

const (
	oldPod           = `{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"a","image":"a"}]}}`
	oldIngress       = `"spec":{"backend":{"serviceName":"a","servicePort":80},"rules":[{"host":"a.example.com","http":{"paths":[{"path":"/a","backend":{"serviceName":"b","servicePort":"web"}}]}}]}`
	oldHook          = `"webhooks":[{"name":"a.example.com","sideEffects":"None","clientConfig":{"url":"https://a.example.com"}}]`
	oldSchema        = `{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object"}}}}`
	oldPolicy        = `"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":["apps"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["deployments"]}]},"validations":[{"expression":"true"}]}`
	oldPolicyBinding = `"spec":{"policyName":"a","validationActions":["Deny"]}`
	oldFlow          = `"spec":{"priorityLevelConfiguration":{"name":"exempt"},"matchingPrecedence":50}`
)

var removedRows = []removedRow{
	{version: "extensions/v1beta1", resource: "deployments", kind: "Deployment", now: "apps/v1",
		rest: `"spec":{"rollbackTo":{"revision":2},"template":` + oldPod + `}`,
		old:  "spec.rollbackTo.revision=2", new: "spec.selector.matchLabels.app=a"},
	{version: "extensions/v1beta1", resource: "daemonsets", kind: "DaemonSet", now: "apps/v1",
		rest: `"spec":{"template":` + oldPod + `}`,
		old:  "spec.templateGeneration=1", new: "spec.updateStrategy.type=OnDelete"},
	{version: "extensions/v1beta1", resource: "replicasets", kind: "ReplicaSet", now: "apps/v1",
		rest: `"spec":{"template":` + oldPod + `}`, old: "spec.replicas=1", new: "spec.selector.matchLabels.app=a"},
	{version: "extensions/v1beta1", resource: "ingresses", kind: "Ingress", now: "networking.k8s.io/v1",
		rest: oldIngress, old: "spec.backend.servicePort=80", new: "spec.rules.0.http.paths.0.backend.service.port.name=web"},
	{version: "extensions/v1beta1", resource: "networkpolicies", kind: "NetworkPolicy", now: "networking.k8s.io/v1",
		rest: `"spec":{"podSelector":{},"ingress":[{"ports":[{"port":80}]}]}`,
		old:  "spec.ingress.0.ports.0.port=80", new: "spec.policyTypes.0=Ingress"},
	{version: "apps/v1beta1", resource: "deployments", kind: "Deployment", now: "apps/v1",
		rest: `"spec":{"template":` + oldPod + `}`, old: "spec.revisionHistoryLimit=2", new: "spec.progressDeadlineSeconds=600"},
	{version: "apps/v1beta1", resource: "statefulsets", kind: "StatefulSet", now: "apps/v1",
		rest: `"spec":{"serviceName":"a","template":` + oldPod + `}`, old: "spec.replicas=1", new: "spec.updateStrategy.type=OnDelete"},
	{version: "apps/v1beta1", resource: "controllerrevisions", kind: "ControllerRevision", now: "apps/v1",
		rest: `"revision":7,"data":{"a":1}`, old: "revision=7", new: "data.a=1"},
	{version: "apps/v1beta2", resource: "deployments", kind: "Deployment", now: "apps/v1",
		rest: `"spec":{"selector":{"matchLabels":{"app":"a"}},"template":` + oldPod + `}`, old: "spec.replicas=1", new: "spec.revisionHistoryLimit=10"},
	{version: "apps/v1beta2", resource: "daemonsets", kind: "DaemonSet", now: "apps/v1",
		rest: `"spec":{"selector":{"matchLabels":{"app":"a"}},"template":` + oldPod + `}`, new: "spec.updateStrategy.type=RollingUpdate"},
	{version: "apps/v1beta2", resource: "replicasets", kind: "ReplicaSet", now: "apps/v1",
		rest: `"spec":{"replicas":2,"selector":{"matchLabels":{"app":"a"}},"template":` + oldPod + `}`, old: "spec.replicas=2", new: "spec.replicas=2"},
	{version: "apps/v1beta2", resource: "statefulsets", kind: "StatefulSet", now: "apps/v1",
		rest: `"spec":{"serviceName":"a","selector":{"matchLabels":{"app":"a"}},"template":` + oldPod + `}`, new: "spec.serviceName=a"},
	{version: "apps/v1beta2", resource: "controllerrevisions", kind: "ControllerRevision", now: "apps/v1",
		rest: `"revision":7,"data":{"a":1}`, old: "revision=7", new: "data.a=1"},
	{version: "networking.k8s.io/v1beta1", resource: "ingresses", kind: "Ingress", now: "networking.k8s.io/v1",
		rest: oldIngress, old: "spec.rules.0.http.paths.0.pathType=ImplementationSpecific", new: "spec.defaultBackend.service.port.number=80"},
	{version: "networking.k8s.io/v1beta1", resource: "ingressclasses", kind: "IngressClass", now: "networking.k8s.io/v1", cluster: true,
		rest: `"spec":{"controller":"example.com/a"}`, new: "spec.controller=example.com/a"},
	{version: "networking.k8s.io/v1beta1", resource: "ipaddresses", kind: "IPAddress", now: "networking.k8s.io/v1", cluster: true, fixed: "192.0.2.1",
		rest: `"spec":{"parentRef":{"resource":"things","name":"a"}}`, new: "spec.parentRef.resource=things"},
	{version: "networking.k8s.io/v1beta1", resource: "servicecidrs", kind: "ServiceCIDR", now: "networking.k8s.io/v1", cluster: true,
		rest: `"spec":{"cidrs":["192.0.2.0/24"]}`, old: "spec.cidrs.0=192.0.2.0/24", new: "spec.cidrs.0=192.0.2.0/24"},
	{version: "batch/v1beta1", resource: "cronjobs", kind: "CronJob", now: "batch/v1",
		rest: `"spec":{"schedule":"* * * * *","jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"a"}]}}}}}`,
		old:  "spec.concurrencyPolicy=Allow", new: "spec.schedule=* * * * *"},
	{version: "policy/v1beta1", resource: "poddisruptionbudgets", kind: "PodDisruptionBudget", now: "policy/v1",
		rest: `"spec":{"minAvailable":1,"selector":{}}`, new: "spec.minAvailable=1"},
	{version: "rbac.authorization.k8s.io/v1beta1", resource: "roles", kind: "Role", now: "rbac.authorization.k8s.io/v1",
		rest: `"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]`, new: "rules.0.verbs.0=get"},
	{version: "rbac.authorization.k8s.io/v1beta1", resource: "clusterroles", kind: "ClusterRole", now: "rbac.authorization.k8s.io/v1", cluster: true,
		rest: `"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]`, new: "rules.0.verbs.0=get"},
	{version: "rbac.authorization.k8s.io/v1beta1", resource: "rolebindings", kind: "RoleBinding", now: "rbac.authorization.k8s.io/v1",
		rest: `"roleRef":{"kind":"Role","name":"a"},"subjects":[{"kind":"User","name":"a"}]`,
		old:  "subjects.0.apiGroup=rbac.authorization.k8s.io", new: "roleRef.apiGroup=rbac.authorization.k8s.io"},
	{version: "rbac.authorization.k8s.io/v1beta1", resource: "clusterrolebindings", kind: "ClusterRoleBinding", now: "rbac.authorization.k8s.io/v1", cluster: true,
		rest: `"roleRef":{"kind":"ClusterRole","name":"a"}`, new: "roleRef.apiGroup=rbac.authorization.k8s.io"},
	{version: "rbac.authorization.k8s.io/v1alpha1", resource: "roles", kind: "Role", now: "rbac.authorization.k8s.io/v1",
		rest: `"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]`, new: "rules.0.verbs.0=get"},
	{version: "rbac.authorization.k8s.io/v1alpha1", resource: "clusterroles", kind: "ClusterRole", now: "rbac.authorization.k8s.io/v1", cluster: true,
		rest: `"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]`, new: "rules.0.verbs.0=get"},
	{version: "rbac.authorization.k8s.io/v1alpha1", resource: "rolebindings", kind: "RoleBinding", now: "rbac.authorization.k8s.io/v1",
		rest: `"roleRef":{"kind":"Role","name":"a"},"subjects":[{"kind":"User","name":"a"}]`,
		old:  "subjects.0.apiVersion=rbac.authorization.k8s.io/v1alpha1", new: "subjects.0.apiGroup=rbac.authorization.k8s.io"},
	{version: "rbac.authorization.k8s.io/v1alpha1", resource: "clusterrolebindings", kind: "ClusterRoleBinding", now: "rbac.authorization.k8s.io/v1", cluster: true,
		rest: `"roleRef":{"kind":"ClusterRole","name":"a"}`, new: "roleRef.apiGroup=rbac.authorization.k8s.io"},
	{version: "scheduling.k8s.io/v1beta1", resource: "priorityclasses", kind: "PriorityClass", now: "scheduling.k8s.io/v1", cluster: true,
		rest: `"value":5`, old: "value=5", new: "preemptionPolicy=PreemptLowerPriority"},
	{version: "coordination.k8s.io/v1beta1", resource: "leases", kind: "Lease", now: "coordination.k8s.io/v1",
		rest: `"spec":{"holderIdentity":"a"}`, new: "spec.holderIdentity=a"},
	{version: "storage.k8s.io/v1beta1", resource: "storageclasses", kind: "StorageClass", now: "storage.k8s.io/v1", cluster: true,
		rest: `"provisioner":"example.com/a"`, old: "volumeBindingMode=Immediate", new: "reclaimPolicy=Delete"},
	{version: "storage.k8s.io/v1beta1", resource: "csidrivers", kind: "CSIDriver", now: "storage.k8s.io/v1", cluster: true,
		rest: `"spec":{"podInfoOnMount":true}`, old: "spec.attachRequired=true", new: "spec.podInfoOnMount=true"},
	{version: "storage.k8s.io/v1beta1", resource: "csinodes", kind: "CSINode", now: "storage.k8s.io/v1", cluster: true,
		rest: `"spec":{"drivers":[{"name":"a","nodeID":"b","topologyKeys":null}]}`, new: "spec.drivers.0.nodeID=b"},
	{version: "storage.k8s.io/v1beta1", resource: "csistoragecapacities", kind: "CSIStorageCapacity", now: "storage.k8s.io/v1",
		rest: `"storageClassName":"a","capacity":"1Gi"`, old: "capacity=1Gi", new: "storageClassName=a"},
	{version: "storage.k8s.io/v1beta1", resource: "volumeattachments", kind: "VolumeAttachment", now: "storage.k8s.io/v1", cluster: true,
		rest: `"spec":{"attacher":"example.com","nodeName":"a","source":{"persistentVolumeName":"a"}}`, new: "spec.nodeName=a"},
	{version: "storage.k8s.io/v1alpha1", resource: "csistoragecapacities", kind: "CSIStorageCapacity", now: "storage.k8s.io/v1",
		rest: `"storageClassName":"a","capacity":"1Gi"`, old: "capacity=1Gi", new: "storageClassName=a"},
	{version: "storage.k8s.io/v1alpha1", resource: "volumeattachments", kind: "VolumeAttachment", now: "storage.k8s.io/v1", cluster: true,
		rest: `"spec":{"attacher":"example.com","nodeName":"a","source":{"persistentVolumeName":"a"}}`, new: "spec.nodeName=a"},
	{version: "storage.k8s.io/v1beta1", resource: "volumeattributesclasses", kind: "VolumeAttributesClass", now: "storage.k8s.io/v1", cluster: true,
		rest: `"driverName":"example.com","parameters":{"a":"b"}`, old: "parameters.a=b", new: "driverName=example.com"},
	{version: "storage.k8s.io/v1alpha1", resource: "volumeattributesclasses", kind: "VolumeAttributesClass", now: "storage.k8s.io/v1", cluster: true,
		rest: `"driverName":"example.com","parameters":{"a":"b"}`, old: "parameters.a=b", new: "driverName=example.com"},
	{version: "node.k8s.io/v1beta1", resource: "runtimeclasses", kind: "RuntimeClass", now: "node.k8s.io/v1", cluster: true,
		rest: `"handler":"a"`, old: "handler=a", new: "handler=a"},
	{version: "discovery.k8s.io/v1beta1", resource: "endpointslices", kind: "EndpointSlice", now: "discovery.k8s.io/v1",
		rest: `"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"],"topology":{"kubernetes.io/hostname":"n","topology.kubernetes.io/zone":"z"}}]`,
		old:  "endpoints.0.addresses.0=10.0.0.1", new: "endpoints.0.zone=z"},
	{version: "events.k8s.io/v1beta1", resource: "events", kind: "Event", now: "events.k8s.io/v1",
		rest: `"eventTime":"2020-01-01T00:00:00.000000Z","reportingController":"example.com/a","reportingInstance":"a","action":"a","reason":"b","type":"Normal","regarding":{"kind":"Pod","name":"p","namespace":"default"},"note":"hello"`,
		old:  "note=hello", new: "regarding.name=p"},
	{version: "certificates.k8s.io/v1beta1", resource: "certificatesigningrequests", kind: "CertificateSigningRequest", now: "certificates.k8s.io/v1", cluster: true,
		rest: `"spec":{"request":"REQUEST","signerName":"example.com/a","usages":["client auth"]}`, new: "spec.signerName=example.com/a"},
	{version: "admissionregistration.k8s.io/v1beta1", resource: "validatingwebhookconfigurations", kind: "ValidatingWebhookConfiguration", now: "admissionregistration.k8s.io/v1", cluster: true,
		rest: oldHook, old: "webhooks.0.failurePolicy=Ignore", new: "webhooks.0.matchPolicy=Exact"},
	{version: "admissionregistration.k8s.io/v1beta1", resource: "mutatingwebhookconfigurations", kind: "MutatingWebhookConfiguration", now: "admissionregistration.k8s.io/v1", cluster: true,
		rest: oldHook, old: "webhooks.0.timeoutSeconds=30", new: "webhooks.0.admissionReviewVersions.0=v1beta1"},
	{version: "admissionregistration.k8s.io/v1beta1", resource: "validatingadmissionpolicies", kind: "ValidatingAdmissionPolicy", now: "admissionregistration.k8s.io/v1", cluster: true,
		rest: oldPolicy, old: "spec.failurePolicy=Fail", new: "spec.matchConstraints.matchPolicy=Equivalent"},
	{version: "admissionregistration.k8s.io/v1alpha1", resource: "validatingadmissionpolicies", kind: "ValidatingAdmissionPolicy", now: "admissionregistration.k8s.io/v1", cluster: true,
		rest: oldPolicy, old: "spec.failurePolicy=Fail", new: "spec.matchConstraints.matchPolicy=Equivalent"},
	{version: "admissionregistration.k8s.io/v1beta1", resource: "validatingadmissionpolicybindings", kind: "ValidatingAdmissionPolicyBinding", now: "admissionregistration.k8s.io/v1", cluster: true,
		rest: oldPolicyBinding, old: "spec.policyName=a", new: "spec.validationActions.0=Deny"},
	{version: "admissionregistration.k8s.io/v1alpha1", resource: "validatingadmissionpolicybindings", kind: "ValidatingAdmissionPolicyBinding", now: "admissionregistration.k8s.io/v1", cluster: true,
		rest: oldPolicyBinding, old: "spec.policyName=a", new: "spec.validationActions.0=Deny"},
	{version: "apiextensions.k8s.io/v1beta1", resource: "customresourcedefinitions", kind: "CustomResourceDefinition", now: "apiextensions.k8s.io/v1", cluster: true, fixed: "things.example.com",
		rest: `"spec":{"group":"example.com","version":"v1","scope":"Namespaced","preserveUnknownFields":false,"names":{"plural":"things","kind":"Thing"},"validation":` + oldSchema + `}`,
		old:  "spec.version=v1", new: "spec.versions.0.schema.openAPIV3Schema.type=object"},
	{version: "apiregistration.k8s.io/v1beta1", resource: "apiservices", kind: "APIService", now: "apiregistration.k8s.io/v1", cluster: true, fixed: "v1.a.example.com",
		rest: `"spec":{"group":"a.example.com","version":"v1","groupPriorityMinimum":10,"versionPriority":10,"insecureSkipTLSVerify":true,"service":{"name":"a","namespace":"b"}}`,
		old:  "spec.service.port=443", new: "spec.service.port=443"},
	{version: "flowcontrol.apiserver.k8s.io/v1beta1", resource: "flowschemas", kind: "FlowSchema", now: "flowcontrol.apiserver.k8s.io/v1", cluster: true,
		rest: oldFlow, new: "spec.matchingPrecedence=50"},
	{version: "flowcontrol.apiserver.k8s.io/v1beta2", resource: "flowschemas", kind: "FlowSchema", now: "flowcontrol.apiserver.k8s.io/v1", cluster: true,
		rest: oldFlow, new: "spec.matchingPrecedence=50"},
	{version: "flowcontrol.apiserver.k8s.io/v1beta3", resource: "flowschemas", kind: "FlowSchema", now: "flowcontrol.apiserver.k8s.io/v1", cluster: true,
		rest: oldFlow, new: "spec.matchingPrecedence=50"},
	{version: "flowcontrol.apiserver.k8s.io/v1beta1", resource: "prioritylevelconfigurations", kind: "PriorityLevelConfiguration", now: "flowcontrol.apiserver.k8s.io/v1", cluster: true,
		rest: `"spec":{"type":"Limited","limited":{"assuredConcurrencyShares":7,"limitResponse":{"type":"Reject"}}}`,
		old:  "spec.limited.assuredConcurrencyShares=7", new: "spec.limited.nominalConcurrencyShares=7"},
	{version: "flowcontrol.apiserver.k8s.io/v1beta2", resource: "prioritylevelconfigurations", kind: "PriorityLevelConfiguration", now: "flowcontrol.apiserver.k8s.io/v1", cluster: true,
		rest: `"spec":{"type":"Limited","limited":{"assuredConcurrencyShares":7,"limitResponse":{"type":"Reject"}}}`,
		old:  "spec.limited.assuredConcurrencyShares=7", new: "spec.limited.nominalConcurrencyShares=7"},
	{version: "flowcontrol.apiserver.k8s.io/v1beta3", resource: "prioritylevelconfigurations", kind: "PriorityLevelConfiguration", now: "flowcontrol.apiserver.k8s.io/v1", cluster: true,
		rest: `"spec":{"type":"Limited","limited":{"nominalConcurrencyShares":7,"limitResponse":{"type":"Reject"}}}`,
		old:  "spec.limited.nominalConcurrencyShares=7", new: "spec.limited.nominalConcurrencyShares=7"},
}
