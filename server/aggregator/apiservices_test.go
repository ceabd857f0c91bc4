package aggregator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plinth-io/plinth/server/kind/custom"
)

// TestDefinitionChanged changes one definition step by step. The group versions that it has or
// had are reconciled if the served ones change.
func TestDefinitionChanged(t *testing.T) {
	f := openFixture(t)
	const name = "widgets.example.com"
	patch := func(patch string) func() {
		return func() {
			if _, err := f.definitions.Patch(t.Context(), name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, step := range []struct {
		name   string
		change func()
		want   []string
	}{
		{"created", func() { f.define("example.com", "v1", "v2", "v3-") }, []string{"v1.example.com", "v2.example.com"}},
		{"a label", patch(`[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`), []string{}},
		{"a version is not served any more", patch(`[{"op":"replace","path":"/spec/versions/1/served","value":false}]`), []string{"v1.example.com", "v2.example.com"}},
		{"a version is served", patch(`[{"op":"replace","path":"/spec/versions/2/served","value":true}]`), []string{"v1.example.com", "v3.example.com"}},
		{"deleted", func() {
			if err := f.definitions.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			patch(`[{"op":"remove","path":"/metadata/finalizers"}]`)()
		}, []string{"v1.example.com", "v3.example.com"}},
	} {
		revision := f.api.Store.Revision()
		step.change()
		for _, ev := range f.changes(custom.DefinitionPrefix, revision) {
			f.a.definitionChanged(ev)
		}
		if diff := cmp.Diff(step.want, queued(f.a.names)); diff != "" {
			t.Errorf("%s: reconciled (-want +got):\n%s", step.name, diff)
		}
	}
}

// Services are told of the objects that name a Service, at the start and with each change. What
// was lost in between is made up for by another Load.
func TestExtensions(t *testing.T) {
	f := openFixture(t)
	f.create(local("v1.local.example.com", 1, ""))
	f.create(remote("v1.far.example.com"))
	if err := f.a.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect := func(when string, want ...string) {
		t.Helper()
		var got []string
		for _, x := range f.a.remote.List() {
			got = append(got, x.Object.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	expect("at the start", "v1.far.example.com")

	revision := f.api.Store.Revision()
	f.create(remote("v1.new.example.com"))
	f.patch("v1.far.example.com", `{"spec":{"service":null,"insecureSkipTLSVerify":null}}`)
	f.patch("v1.local.example.com", `{"metadata":{"annotations":{"text":"\"service\":{"}}}`) // names no Service
	for _, ev := range f.changes(apiServicePrefix, revision) {
		f.a.changed(ev)
	}
	expect("changed", "v1.new.example.com")
	if diff := cmp.Diff([]string{"v1.far.example.com", "v1.local.example.com", "v1.new.example.com"}, queued(f.a.names)); diff != "" {
		t.Errorf("reconciled (-want +got):\n%s", diff)
	}

	revision = f.api.Store.Revision()
	f.delete("v1.new.example.com")
	f.create(remote("v1.newer.example.com"))
	if err := f.a.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect("read anew", "v1.newer.example.com")
	f.delete("v1.newer.example.com")
	for _, ev := range f.changes(apiServicePrefix, revision) {
		f.a.changed(ev)
	}
	expect("deleted")
}

// When changes are lost, everything is reconciled: the built-in group versions, those of
// definitions and all objects.
func TestReconcileAgain(t *testing.T) {
	f := openFixture(t)
	f.create(local("v1.mine.example.com", 1, ""))
	f.define("example.com", "v1")
	f.a.again(t.Context())
	want := map[string]bool{"v1.mine.example.com": true, "v1.example.com": true}
	for name := range f.a.own {
		want[name] = true
	}
	got := map[string]bool{}
	for _, name := range queued(f.a.names) {
		got[name] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reconciled (-want +got):\n%s", diff)
	}
}
