package past

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// before adds items before the others, and turns the order of these around.
func before(t *testing.T, texts ...string) func(items []any) []any {
	t.Helper()
	var added []any
	for _, text := range texts {
		var item map[string]any
		if err := yaml.Unmarshal([]byte(text), &item); err != nil {
			t.Fatal(err)
		}
		added = append(added, item)
	}
	return func(items []any) []any {
		items[0], items[1] = items[1], items[0]
		return append(added, items...)
	}
}

// rename gives the item in which a field has a value another value in another field.
func rename(key string, is any, field, value string) func(items []any) []any {
	return func(items []any) []any {
		for _, item := range items {
			if item := item.(map[string]any); fmt.Sprint(item[key]) == fmt.Sprint(is) {
				item[field] = value
			}
		}
		return items
	}
}

// keyed are changes of items by ann, and later ones of the same lists by somebody else.
type keyed struct {
	target     Target
	ann, other func(*unstructured.Unstructured)
	path       []string
	want       string // what is at the path without ann's change
}

func (f *fixture) keyedChanges(service, deployment, custom Target) []keyed {
	f.Helper()
	return []keyed{
		{service, edit(rename("name", "udp", "name", "renamed"), "spec", "ports"),
			edit(before(f.T, "{name: web, port: 80, protocol: TCP, targetPort: 80}"), "spec", "ports"), []string{"spec", "ports"},
			`{name: web, port: 80, protocol: TCP, targetPort: 80}, {name: tcp, port: 53, protocol: TCP, targetPort: 53}, {name: udp, port: 53, protocol: UDP, targetPort: 53}`},
		{deployment, inContainer("env", rename("name", "A", "value", "annother")),
			inContainer("env", before(f.T, "{name: C, value: three}")), []string{"spec", "template", "spec", "containers"},
			`[{name: C, value: three}, {name: B, value: two}, {name: A, value: one}]`},
		{custom, edit(rename("hull", 7, "name", "sunk"), "ships"), edit(before(f.T, "{hull: 1, name: dora}"), "ships"), []string{"ships"},
			`{hull: 1, name: dora}, {hull: 9, name: bella}, {hull: 7, name: anna}`},
		{custom, edit(rename("type", "Ready", "status", "True"), "status", "conditions"),
			edit(before(f.T, `{type: Manned, status: "True"}`), "status", "conditions"), []string{"status", "conditions"},
			`{type: Manned, status: "True"}, {status: "True", type: Afloat}, {type: Ready, status: "False"}`},
	}
}

// check compares what is at the path; of containers the env of the first.
func (f *fixture) check(k keyed) {
	f.Helper()
	items, _, err := unstructured.NestedSlice(f.now(k.target).Object, k.path...)
	f.must(err)
	if env, ok := items[0].(map[string]any)["env"].([]any); ok {
		items = env
	}
	got, err := json.Marshal(items)
	f.must(err)
	want, err := yaml.YAMLToJSON([]byte("[" + trimmed(k.want) + "]"))
	f.must(err)
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		f.Errorf("%s %v: %s", k.target, k.path, diff)
	}
}

// trimmed is a list without its brackets, if it has any.
func trimmed(list string) string {
	if list[0] == '[' {
		return list[1 : len(list)-1]
	}
	return list
}

// TestUndoUserItems undoes what ann changed in items of lists, which others have reordered and added to since: a controller,
// which counts as nobody, and bob.
func TestUndoUserItems(t *testing.T) {
	t.Parallel()
	f := start(t)
	ann := f.client("ann")
	service, deployment, custom := f.createKeyed(f.c)
	for _, other := range []struct {
		user   string
		others int
	}{{"system:kube-controller-manager", 0}, {"bob", 1}} {
		for _, k := range f.keyedChanges(service, deployment, custom) {
			was := f.now(k.target)
			since := Moment{Revision: revisionOf(f.change(ann, k.target, k.ann))}
			f.change(f.client(other.user), k.target, k.other)
			deeds, err := f.c.Reverter.Deeds(f.Context(), Query{Namespace: "default"}.Bound(historyv1.FieldSince, since), "ann")
			f.must(err)
			if len(deeds) != 1 || len(deeds[0].Others) != other.others || !deeds[0].ByFields() {
				t.Fatalf("%s after %s: the deeds are %+v", k.target, other.user, deeds)
			}
			f.do(f.c.Reverter.UndoDeed(f.Context(), deeds[0]))
			f.check(k)
			f.change(f.c, k.target, func(o *unstructured.Unstructured) {
				o.Object["spec"], o.Object["ships"], o.Object["status"] = was.Object["spec"], was.Object["ships"], was.Object["status"]
			})
		}
	}
}

// TestUndoUserSpans undoes changes of ann between which others have made theirs, and between which nobody has.
func TestUndoUserSpans(t *testing.T) {
	t.Parallel()
	f := start(t)
	ann, bob := f.client("ann"), f.client("bob")
	settings := f.target("configmaps", "settings")
	f.create(bob, "configmaps", configMap("settings", "0"))
	since := Moment{Revision: revisionOf(f.change(ann, settings, set("k", "1")))}
	f.change(ann, settings, set("a", "1"))
	f.change(bob, settings, set("b", "1"))
	f.change(ann, settings, set("k", "2"))
	f.change(ann, settings, set("b", "2"))
	f.change(bob, settings, set("c", "1"))
	deeds, err := f.c.Reverter.Deeds(f.Context(), Query{Namespace: "default"}.Bound(historyv1.FieldSince, since), "ann")
	f.must(err)
	if len(deeds) != 1 || len(deeds[0].spans) != 2 || len(deeds[0].Others) != 2 {
		t.Fatalf("the deeds are %+v", deeds)
	}
	got, _, _ := unstructured.NestedStringMap(f.do(f.c.Reverter.UndoDeed(f.Context(), deeds[0])).Object, "data")
	if diff := cmp.Diff(map[string]string{"k": "0", "b": "1", "c": "1"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestUndoUserWhole has an object that was deleted and created between a user's changes: it gets the state from before.
func TestUndoUserWhole(t *testing.T) {
	t.Parallel()
	f := start(t)
	ann, bob := f.client("ann"), f.client("bob")
	settings := f.target("configmaps", "settings")
	f.create(bob, "configmaps", configMap("settings", "0"))
	since := Moment{Revision: revisionOf(f.change(ann, settings, set("k", "1")))}
	f.remove(ann, settings)
	f.create(ann, "configmaps", configMap("settings", "2"))
	f.change(bob, settings, set("b", "1"))
	deeds, err := f.c.Reverter.Deeds(f.Context(), Query{Namespace: "default"}.Bound(historyv1.FieldSince, since), "ann")
	f.must(err)
	if len(deeds) != 1 || deeds[0].Verb() != "change" || deeds[0].ByFields() {
		t.Fatalf("the deeds are %+v", deeds)
	}
	got, _, _ := unstructured.NestedStringMap(f.do(f.c.Reverter.UndoDeed(f.Context(), deeds[0])).Object, "data")
	if diff := cmp.Diff(map[string]string{"k": "0"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestUndoLeavesStatusWrites undoes a change after which a controller has written the status, and an annotation with it.
func TestUndoLeavesStatusWrites(t *testing.T) {
	t.Parallel()
	f := start(t)
	web := f.target("deploy", "web")
	f.create(f.c, "deployments", deployment)
	f.change(f.c, web, replicas(2))
	f.change(f.client("system:kube-controller-manager"), web, func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{"deployment.kubernetes.io/revision": "2"})
	}, "status")
	after := f.do(f.c.Reverter.Undo(f.Context(), web, Moment{}))
	if replicasOf(after) != 1 || after.GetAnnotations()["deployment.kubernetes.io/revision"] != "2" {
		t.Errorf("undone: %v", after.Object)
	}
	after = f.do(f.c.Reverter.Undo(f.Context(), web, Moment{}))
	if replicasOf(after) != 2 || after.GetAnnotations()["deployment.kubernetes.io/revision"] != "2" {
		t.Errorf("undone again: %v", after.Object)
	}
}

// TestUndoStoredVersion undoes between two states that were stored in different API versions: it is the state from before.
func TestUndoStoredVersion(t *testing.T) {
	t.Parallel()
	object := func(version, field string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, field: "x"}}
	}
	for _, row := range []struct{ now, before, after *unstructured.Unstructured }{
		{object("v2", "c"), object("v1", "a"), object("v2", "b")},
		{object("v2", "c"), object("v1", "a"), object("v1", "b")},
		{object("v1", "c"), object("v1", "a"), nil},
	} {
		if got := without(row.now, row.before, row.after); got != row.before {
			t.Errorf("%v, want what was before", got.Object)
		}
	}
	if got := without(object("v1", "c"), object("v1", "a"), object("v1", "b")); len(got.Object) != 3 {
		t.Errorf("of one version: %v", got.Object)
	}
}
