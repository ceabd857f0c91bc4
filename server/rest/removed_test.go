package rest_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizerfactory"

	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/rest"
)

// TestRemovedVersions walks over all versions that are served on request only: what is
// written in them is read in today's, and the other way round.
func TestRemovedVersions(t *testing.T) {
	all, err := builtin.RemovedAPIs([]string{"all"})
	if err != nil {
		t.Fatal(err)
	}
	onEachDialect(t, rest.Options{}, func(t *testing.T, h *harness) {
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

// TestRemovedScales changes the replicas of what could be scaled, and its status, in the
// bodies that there were.
func TestRemovedScales(t *testing.T) {
	all, err := builtin.RemovedAPIs([]string{"apps/v1beta1", "apps/v1beta2", "extensions/v1beta1"})
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(t, rest.Options{})
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
				if e.Subresource == "" && strings.Contains(string(e.FieldsV1.Raw), "f:status") {
					t.Errorf("manages a status that it cannot write: %s", e.FieldsV1.Raw)
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

// TestRemovedReviews asks the questions that are not stored.
func TestRemovedReviews(t *testing.T) {
	all, err := builtin.RemovedAPIs([]string{"authentication.k8s.io/v1beta1", "authorization.k8s.io/v1beta1"})
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(t, rest.Options{})
	h.serveRemoved(all)
	for _, c := range []struct{ path, kind, spec, field, want string }{
		{"authorization.k8s.io/v1beta1/subjectaccessreviews", "SubjectAccessReview", `{"user":"a","group":["b"],"resourceAttributes":{"verb":"get","resource":"pods"}}`, "spec.group.0", "b"},
		{"authorization.k8s.io/v1beta1/selfsubjectaccessreviews", "SelfSubjectAccessReview", `{"resourceAttributes":{"verb":"get","resource":"pods"}}`, "status.allowed", "true"},
		{"authorization.k8s.io/v1beta1/selfsubjectrulesreviews", "SelfSubjectRulesReview", `{"namespace":"default"}`, "status.incomplete", "false"},
		{"authorization.k8s.io/v1beta1/namespaces/default/localsubjectaccessreviews", "LocalSubjectAccessReview", `{"user":"a","resourceAttributes":{"namespace":"default","verb":"get","resource":"pods"}}`, "status.allowed", "true"},
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
		h.warned(removedRow{version: version, kind: c.kind, now: strings.Replace(version, "v1beta1", "v1", 1)}, a)
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
	if row.kind == "CustomResourceDefinition" { // waits for a controller that is not there
		h.do("PATCH", old+"/"+name, `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json").want(200)
	}
	h.do("GET", now+"/"+name, "").want(404)
}

// warned checks the header of each answer in a removed version.
func (h *harness) warned(row removedRow, a answer) {
	h.t.Helper()
	text := strings.Join(a.head.Values("Warning"), "\n")
	if !strings.Contains(text, row.version+" "+row.kind+" was removed in v1.") || !strings.Contains(text, "; use "+row.now+" "+row.kind) {
		h.t.Errorf("warning %q", text)
	}
}

// oldAndNew looks at a field that the two versions have in different places.
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

// changedInOld writes through the removed version in every way.
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
