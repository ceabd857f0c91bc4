package past

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// TestDeeds undoes what one user did, from the last to the first, and leaves what others changed since.
func TestDeeds(t *testing.T) {
	t.Parallel()
	f := start(t)
	ann, bob := f.client("ann"), f.client("bob")
	names := []string{"changed", "deleted", "changed-and-deleted", "others", "late"}
	for _, name := range names {
		f.create(bob, "configmaps", configMap(name, "0"))
	}
	f.change(ann, f.target("configmaps", "late"), set("k", "early")) // before the window
	since := Moment{Revision: revisionOf(f.change(bob, f.target("configmaps", "late"), set("other", "x"))) + 1}

	f.change(ann, f.target("configmaps", "changed"), set("k", "1"))
	f.create(ann, "configmaps", configMap("created", "1"))
	f.remove(ann, f.target("configmaps", "deleted"))
	f.change(ann, f.target("configmaps", "changed-and-deleted"), set("k", "1"))
	f.remove(ann, f.target("configmaps", "changed-and-deleted"))
	f.change(ann, f.target("configmaps", "others"), set("k", "1"))
	f.change(bob, f.target("configmaps", "others"), set("other", "2"))
	f.create(ann, "configmaps", configMap("came-and-went", "1"))
	f.remove(ann, f.target("configmaps", "came-and-went"))
	f.change(ann, f.target("configmaps", "changed"), set("k", "2"))
	f.change(ann, f.target("configmaps", "late"), set("k", "1"))

	deeds, err := f.c.Reverter.Deeds(f.Context(), Query{Namespace: "default"}.Bound(historyv1.FieldSince, since), "ann")
	f.must(err)
	var got []string
	for _, deed := range deeds {
		got = append(got, fmt.Sprintf("%s %s %d", deed.Verb(), deed.Object.Name, len(deed.Others)))
		step, err := f.c.Reverter.UndoDeed(f.Context(), deed)
		f.must(err)
		if len(deed.Others) == 0 {
			f.do(step, nil)
		}
	}
	want := []string{"change late 0", "change changed 0", "change others 1", "create changed-and-deleted 0", "create deleted 0", "delete created 0"}
	if !slices.Equal(got, want) {
		t.Errorf("the deeds are %q, want %q", got, want)
	}
	for name, value := range map[string]string{"changed": "0", "deleted": "0", "changed-and-deleted": "0", "others": "1", "late": "early"} {
		if o := f.now(f.target("configmaps", name)); o == nil || valueOf(o) != value {
			t.Errorf("%s is %v, want %s", name, o, value)
		}
	}
	if f.now(f.target("configmaps", "created")) != nil {
		t.Error("what was created is there")
	}
}

func revisionOf(o *unstructured.Unstructured) (revision int64) {
	_, _ = fmt.Sscan(o.GetResourceVersion(), &revision)
	return revision
}

// TestDeedsNamespace has a namespace that a user created and that others use: their objects are at stake, too.
func TestDeedsNamespace(t *testing.T) {
	t.Parallel()
	f := start(t)
	ann, bob := f.client("ann"), f.client("bob")
	kind, err := f.c.Kinds.Find("namespaces")
	f.must(err)
	namespace := f.parse("{apiVersion: v1, kind: Namespace, metadata: {name: ours}}")
	created, err := ann.Reverter.endpoint(kind.In("", "ours"), namespace).Create(f.Context(), namespace, metav1.CreateOptions{})
	f.must(err)
	maps, err := f.c.Kinds.Find("configmaps")
	f.must(err)
	precious := f.parse(configMap("precious", "1"))
	_, err = bob.Reverter.endpoint(maps.In("ours", "precious"), precious).Create(f.Context(), precious, metav1.CreateOptions{})
	f.must(err)
	since := Moment{Revision: revisionOf(created)}
	deeds, err := f.c.Reverter.Deeds(f.Context(), Query{}.Bound(historyv1.FieldSince, since), "ann")
	f.must(err)
	if len(deeds) != 1 || deeds[0].Verb() == "delete" && len(deeds[0].Others) == 0 {
		t.Errorf("undoing ann's namespace would delete bob's object in it, and nobody is named: %+v", deeds)
	}
}

// TestDeedsDefinition has a definition that a user created and one that he deleted, whose end the server
// writes as a change of its status.
func TestDeedsDefinition(t *testing.T) {
	t.Parallel()
	f := start(t)
	ann, bob := f.client("ann"), f.client("bob")
	old := f.create(bob, "customresourcedefinitions", definition("olds"))
	since := Moment{Revision: revisionOf(old) + 1}
	f.create(ann, "customresourcedefinitions", definition("things"))
	kind, err := bob.Kinds.await(f.Context(), "things.example.com")
	f.must(err)
	thing := f.parse("{apiVersion: example.com/v1, kind: Things, metadata: {name: precious}}")
	f.eventually(func() error {
		_, err := bob.Reverter.endpoint(kind.In("", "precious"), thing).Create(f.Context(), thing, metav1.CreateOptions{})
		return err
	})
	f.remove(ann, f.target("customresourcedefinitions", "olds.example.com"))
	f.eventually(func() error {
		if f.now(f.target("customresourcedefinitions", "olds.example.com")) != nil {
			return errors.New("the definition is still there")
		}
		return nil
	})
	deeds, err := f.c.Reverter.Deeds(f.Context(), Query{}.Bound(historyv1.FieldSince, since), "ann")
	f.must(err)
	var got []string
	for _, d := range deeds {
		got = append(got, fmt.Sprintf("%s %s %d", d.Verb(), d.Object.Name, len(d.Others)))
	}
	if want := []string{"create olds.example.com 0", "delete things.example.com 1"}; !slices.Equal(got, want) {
		t.Errorf("the deeds are %q, want %q", got, want)
	}
	step, err := f.c.Reverter.Undo(f.Context(), f.target("customresourcedefinitions", "things.example.com"), Moment{})
	f.must(err)
	if len(step.Within) != 1 || step.Within[0].Name != "precious" {
		t.Errorf("with the definition goes %v", step.Within)
	}
}

func definition(plural string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: %[1]s, kind: %[2]s}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, plural, strings.ToUpper(plural[:1])+plural[1:])
}

// TestDeedsReplaced has objects that a user created and deleted, and of which others created new ones.
func TestDeedsReplaced(t *testing.T) {
	t.Parallel()
	f := start(t)
	ann, bob := f.client("ann"), f.client("bob")
	since := Moment{Revision: revisionOf(f.create(bob, "configmaps", configMap("begin", "")))}
	for _, name := range []string{"again", "changed"} {
		f.create(ann, "configmaps", configMap(name, "1"))
		f.remove(ann, f.target("configmaps", name))
		f.create(bob, "configmaps", configMap(name, "2"))
	}
	f.change(ann, f.target("configmaps", "changed"), set("k", "3"))
	deeds, err := f.c.Reverter.Deeds(f.Context(), Query{Namespace: "default"}.Bound(historyv1.FieldSince, since), "ann")
	f.must(err)
	if len(deeds) != 1 || deeds[0].Object.Name != "changed" || deeds[0].Verb() != "change" || len(deeds[0].Others) != 0 {
		t.Fatalf("the deeds are %+v", deeds)
	}
	f.do(f.c.Reverter.UndoDeed(f.Context(), deeds[0]))
	for _, name := range []string{"again", "changed"} {
		if o := f.now(f.target("configmaps", name)); o == nil || valueOf(o) != "2" {
			t.Errorf("%s is %v", name, o)
		}
	}
}
