package builtin_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
)

// shapes are bodies that differ in values, in present and absent fields, in items of lists with
// and without keys, in atomic fields and in quantities.
var shapes = []struct {
	kind   schema.GroupKind
	body   string
	values [][]string // what the n-th %s may be
}{
	{schema.GroupKind{Kind: "ConfigMap"}, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x","uid":"u"%s%s},"data":{"a":"b"%s},"immutable":%s}`, [][]string{
		{`,"labels":{"l":"1"}`, `,"labels":{"l":"2"}`, ``}, {``, `,"resourceVersion":"7"`, `,"generation":3`},
		{`,"c":"1"`, `,"c":"2"`, ``}, {"true", "false", "null"},
	}},
	{schema.GroupKind{Group: "apps", Kind: "Deployment"}, `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"x","uid":"u","finalizers":[%s]},"spec":{"replicas":%s,"selector":{"matchLabels":{"a":%s}},
		"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":%s,"image":%s,"args":%s,"resources":{"limits":{"cpu":%s}}}%s]}}},"status":{"replicas":%s,"conditions":[%s]}}`, [][]string{
		{``, `"x.io/a"`, `"x.io/a","x.io/b"`}, {"1", "2"}, {`"b"`, `"c"`}, {`"main"`, `"other"`}, {`"i:1"`, `"i:2"`}, {`[]`, `["1"]`, `["2"]`, `null`},
		{`"1"`, `"1000m"`, `"2"`}, {``, `,{"name":"side","image":"i"}`}, {"0", "1"}, {``, `{"type":"A","status":"True"}`, `{"type":"A","status":"False"}`},
	}},
	{schema.GroupKind{Kind: "Service"}, `{"kind":"Service","apiVersion":"v1","metadata":{"name":"x","uid":"u"},"spec":{"selector":{"a":%s},"ports":[{"port":80,"protocol":%s,"targetPort":%s}%s],"clusterIP":%s}}`, [][]string{
		{`"b"`, `"c"`}, {`"TCP"`, `"UDP"`}, {`"http"`, `8080`}, {``, `,{"port":81,"protocol":"TCP"}`}, {`""`, `"None"`},
	}},
	{schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}, `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"as.x.io","uid":"u"%s},
		"spec":{"group":"x.io","scope":"Namespaced","names":{"plural":"as","kind":"A"%s},"versions":[{"name":"v1","served":%s,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{"type":%s}}}}}]},
		"status":{"acceptedNames":{"plural":"as","kind":"A"%s},"storedVersions":["v1"%s],"conditions":[%s]}}`, [][]string{
		{`,"labels":{"l":"1"}`, ``}, {`,"shortNames":["a"]`, ``}, {"true", "false"}, {`"string"`, `"integer"`}, {`,"shortNames":["a"]`, ``}, {`,"v2"`, ``},
		{``, `{"type":"Established","status":"True"}`, `{"type":"Established","status":"False"}`, `{"type":"NamesAccepted","status":"True"},{"type":"Established","status":"True"}`},
	}},
}

// kindsByName are the built-in kinds.
func kindsByName() map[schema.GroupKind]*kind.Kind {
	kinds := map[schema.GroupKind]*kind.Kind{}
	for _, k := range builtin.Kinds(builtin.Options{}) {
		kinds[schema.GroupKind{Group: k.Group, Kind: k.Kind}] = k
	}
	return kinds
}

// TestShortCutsMatchUpstream: after any write, the short cuts record the same managers as
// upstream.
func TestShortCutsMatchUpstream(t *testing.T) {
	kinds := kindsByName()
	for _, shape := range shapes {
		t.Run(shape.kind.String(), func(t *testing.T) {
			k := kinds[shape.kind]
			rnd, short := rand.New(rand.NewPCG(1, 2)), 0
			values := make([]any, len(shape.values))
			draw := func() runtime.Object {
				one := rnd.IntN(len(values) + 1) // what changes; all of it at times
				for i, v := range shape.values {
					if i == one || one == len(values) || values[i] == nil {
						values[i] = v[rnd.IntN(len(v))]
					}
				}
				return decoded(t, k, fmt.Sprintf(shape.body, values...))
			}
			live := draw()
			for n := range 400 {
				f, owns := k.Versions[0].Fields, ""
				if status := k.Subresources["status"]; status != nil && rnd.IntN(3) == 0 {
					f, owns = status.Fields[k.Versions[0].Name], "/status"
				}
				manager := []string{"one", "two", ""}[rnd.IntN(3)]
				obj := draw()
				if rnd.IntN(3) == 0 {
					setFields(t, obj, fieldsOf(t, live.DeepCopyObject()))
				}
				before, given := live.DeepCopyObject(), obj.DeepCopyObject()
				want, tracked := bothWays(t, f, live, obj, manager)
				got := fieldsOf(t, tracked)
				if diff := cmp.Diff(want, got, cmp.Comparer(sameTime)); diff != "" {
					t.Fatalf("write %d by %q%s (-upstream +short cut):\n%s", n, manager, owns, diff)
				}
				if len(got) > 0 && len(fieldsOf(t, live)) == len(got) && keptAll(fieldsOf(t, live), got) {
					short++
				}
				if diff := cmp.Diff(before, live); diff != "" {
					t.Fatalf("write %d changed the live object:\n%s", n, diff)
				}
				setFields(t, given, got)
				if diff := cmp.Diff(given, tracked); diff != "" {
					t.Fatalf("write %d changed more than managed fields:\n%s", n, diff)
				}
				if rnd.IntN(20) == 0 { // somebody applies, or starts again
					live = created(t, k, draw())
				} else if len(got) > 0 {
					live = tracked
				}
			}
			if short < 10 {
				t.Errorf("the short cut was taken %d times", short)
			}
		})
	}
}

// bothWays tracks a write with and without the short cuts, within one second: the order of
// entries depends on the time.
func bothWays(t *testing.T, f *kind.FieldManager, live, obj runtime.Object, manager string) (want []metav1.ManagedFieldsEntry, tracked runtime.Object) {
	t.Helper()
	for {
		begun := time.Now().Unix()
		want = fieldsOf(t, f.UpdateNoErrors(live.DeepCopyObject(), obj.DeepCopyObject(), manager))
		tracked = f.Track(live, obj.DeepCopyObject(), manager)
		if time.Now().Unix() == begun {
			return want, tracked
		}
	}
}

// keptAll reports whether all entries have the sets that they had before.
func keptAll(before, after []metav1.ManagedFieldsEntry) bool {
	had := map[*metav1.FieldsV1]bool{}
	for _, e := range before {
		had[e.FieldsV1] = true
	}
	for _, e := range after {
		if !had[e.FieldsV1] {
			return false
		}
	}
	return true
}

func sameTime(a, b *metav1.Time) bool { return a.Sub(b.Time).Abs().Seconds() < 60 }

func fieldsOf(t *testing.T, obj runtime.Object) []metav1.ManagedFieldsEntry {
	t.Helper()
	m, err := meta.Accessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	return m.GetManagedFields()
}

func setFields(t *testing.T, obj runtime.Object, entries []metav1.ManagedFieldsEntry) {
	t.Helper()
	m, err := meta.Accessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	m.SetManagedFields(entries)
}

func decoded(t *testing.T, k *kind.Kind, body string) runtime.Object {
	t.Helper()
	obj, _, err := k.Codec.Decode([]byte(body), runtime.ContentTypeJSON, k.GVK(k.Versions[0].Name), false)
	if err != nil {
		t.Fatal(err, body)
	}
	return obj
}

// created gives an object the fields that its creator has.
func created(t *testing.T, k *kind.Kind, obj runtime.Object) runtime.Object {
	t.Helper()
	empty, f := k.Codec.New(), k.Versions[0].Fields
	want, obj := bothWays(t, f, empty, obj, "one")
	if diff := cmp.Diff(want, fieldsOf(t, obj), cmp.Comparer(sameTime)); diff != "" {
		t.Fatalf("create (-upstream +short cut):\n%s", diff)
	}
	json, err := k.Codec.Encode(obj)
	if err != nil {
		t.Fatal(err)
	}
	return decoded(t, k, string(json))
}
