package builtin_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/plinth-io/plinth/server/kind"
)

// TestApplyMatchesUpstream: any sequence of applies and updates by several managers makes the same
// objects, entries and errors with the short cut as without.
func TestApplyMatchesUpstream(t *testing.T) {
	kinds := kindsByName()
	for _, shape := range shapes {
		t.Run(shape.kind.String(), func(t *testing.T) {
			a := &applying{k: kinds[shape.kind], rnd: rand.New(rand.NewPCG(3, 4)), body: shape.body, values: shape.values}
			a.drawn = make([]any, len(shape.values))
			for n := range 500 {
				a.step(t, n)
			}
		})
	}
}

// applying is a random sequence of writes of one object.
type applying struct {
	k      *kind.Kind
	rnd    *rand.Rand
	body   string
	values [][]string
	drawn  []any
	live   runtime.Object // nil: it is not there
}

// draw returns a body which mostly differs from the last in one place.
func (a *applying) draw() string {
	one := a.rnd.IntN(len(a.drawn) + 1)
	for i, v := range a.values {
		if i == one || one == len(a.drawn) || a.drawn[i] == nil {
			a.drawn[i] = v[a.rnd.IntN(len(v))]
		}
	}
	return fmt.Sprintf(a.body, a.drawn...)
}

// configuration is a drawn body without what clients do not apply, and at times without more, with
// null, or with empty values.
func (a *applying) configuration(t *testing.T) map[string]any {
	t.Helper()
	var config map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(a.draw()), &config); err != nil {
		t.Fatal(err)
	}
	metadata := config["metadata"].(map[string]any)
	delete(metadata, "uid")
	delete(metadata, "resourceVersion")
	delete(metadata, "generation")
	if a.rnd.IntN(3) > 0 {
		delete(config, "status")
	}
	if a.rnd.IntN(4) == 0 {
		a.spoil(config)
	}
	if a.rnd.IntN(12) == 0 {
		metadata["annotations"] = map[string]any{"kubectl.kubernetes.io/last-applied-configuration": `{"apiVersion":"v1"}`}
	}
	return config
}

// spoil removes or replaces a value somewhere.
func (a *applying) spoil(config map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(config)) { // in one order, so that each run makes the same
		value := config[key]
		if a.rnd.IntN(3) > 0 || key == "kind" || key == "apiVersion" {
			continue
		}
		if within, ok := value.(map[string]any); ok && a.rnd.IntN(3) > 0 {
			a.spoil(within)
			continue
		}
		switch a.rnd.IntN(5) {
		case 0:
			config[key] = nil
		case 1:
			config[key] = map[string]any{}
		case 2:
			config[key] = []any{}
		case 3:
			config["unknown"] = "x"
		default:
			delete(config, key)
		}
	}
}

func (a *applying) step(t *testing.T, n int) {
	t.Helper()
	f := a.k.Versions[0].Fields
	if status := a.k.Subresources["status"]; status != nil && a.rnd.IntN(4) == 0 {
		f = status.Fields[a.k.Versions[0].Name]
	}
	manager := []string{"one", "two", "kubectl", ""}[min(a.rnd.IntN(7), 3)]
	switch a.rnd.IntN(12) {
	case 0:
		a.live = nil
		return
	case 1, 2:
		if a.live != nil {
			a.live = f.Track(a.live, decoded(t, a.k, a.draw()), manager)
		}
		return
	}
	live := a.live
	if live == nil {
		live = a.k.Codec.New()
		if a.rnd.IntN(2) == 0 {
			live = newBody(t, a.k.Codec, a.k.GVK(a.k.Versions[0].Name))
		}
	}
	config, force := a.configuration(t), a.rnd.IntN(3) > 0
	before := live.DeepCopyObject()
	want, wantErr, got, gotErr := applyBothWays(f, live, config, manager, force)
	text, _ := json.Marshal(config)
	if errorText(wantErr) != errorText(gotErr) {
		t.Fatalf("apply %d of %s by %q: %v, upstream's error is %v", n, text, manager, gotErr, wantErr)
	}
	if diff := cmp.Diff(before, live); diff != "" && a.live != nil {
		t.Fatalf("apply %d changed the live object:\n%s", n, diff)
	}
	if gotErr != nil {
		return
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(bothTimes)); diff != "" {
		t.Fatalf("apply %d of %s by %q (-upstream +short cut):\n%s", n, text, manager, diff)
	}
	if f.Subresource != "" && a.live == nil {
		return // a status is not applied to nothing
	}
	value, err := a.k.Codec.Encode(got)
	if err != nil {
		t.Fatal(err)
	}
	a.live = decoded(t, a.k, string(value))
	a.live.(metav1.Object).SetUID("u")
	for _, e := range fieldsOf(t, a.live) {
		if e.Time != nil && a.rnd.IntN(2) == 0 {
			e.Time.Time = e.Time.Add(-time.Hour)
		}
	}
}

// errorText is an error's text without what it depends on by the order of a map.
func errorText(err error) string {
	text := fmt.Sprint(err)
	if strings.HasPrefix(text, "failed to create typed patch object") {
		return "bad fields"
	}
	conflicts := strings.Split(strings.ReplaceAll(text, ", ", "\n"), "\n")
	slices.Sort(conflicts)
	return strings.Join(conflicts, "\n")
}

// bothTimes tells whether two times are absent, or are less than a minute apart.
func bothTimes(a, b *metav1.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return sameTime(a, b)
}

// applyBothWays applies with and without the short cut, within one second: the order of entries
// depends on the time.
func applyBothWays(f *kind.FieldManager, live runtime.Object, config map[string]any, manager string, force bool) (want runtime.Object, wantErr error, got runtime.Object, gotErr error) {
	for {
		begun := time.Now().Unix()
		want, wantErr = f.FieldManager.Apply(live.DeepCopyObject(), &unstructured.Unstructured{Object: runtime.DeepCopyJSON(config)}, manager, force)
		got, gotErr = f.Apply(live, &unstructured.Unstructured{Object: runtime.DeepCopyJSON(config)}, manager, force)
		if time.Now().Unix() == begun {
			return want, wantErr, got, gotErr
		}
	}
}

// TestApplyAllocates: creating an object by an apply, and changing one field of it, take the short cut.
func TestApplyAllocates(t *testing.T) {
	k := find(t, "apps", "deployments")
	f := k.Versions[0].Fields
	config := func(image string) *unstructured.Unstructured {
		var c map[string]any
		text := `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"x"},"spec":{"replicas":2,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"` + image + `"}]}}}}`
		if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		return &unstructured.Unstructured{Object: c}
	}
	created, err := f.Apply(newBody(t, k.Codec, k.GVK("v1")), config("i:1"), "me", false)
	if err != nil {
		t.Fatal(err)
	}
	for what, live := range map[string]runtime.Object{"create": newBody(t, k.Codec, k.GVK("v1")), "change": created} {
		applies := func(apply func(live, config runtime.Object, manager string, force bool) (runtime.Object, error)) float64 {
			return testing.AllocsPerRun(20, func() {
				if _, err := apply(live.DeepCopyObject(), config("i:2"), "me", false); err != nil {
					t.Fatal(err)
				}
			})
		}
		short, upstream := applies(f.Apply), applies(f.FieldManager.Apply)
		t.Logf("%s: %v allocations, upstream %v", what, short, upstream)
		if short > upstream*0.7 {
			t.Errorf("%s: %v allocations, upstream makes %v", what, short, upstream)
		}
	}
}
