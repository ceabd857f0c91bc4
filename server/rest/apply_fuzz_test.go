package rest_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
	"sigs.k8s.io/yaml"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/rest"
)

// FuzzApply applies random configurations. After a success the managed fields can be decoded, and
// name fields that the object has or that the configuration sets to an empty value.
func FuzzApply(f *testing.F) {
	for i, target := range patchTargets {
		name, _, _ := strings.Cut(target, "/")
		f.Add([]byte(patchObjects[name]), uint8(i))
		if asYAML, err := yaml.JSONToYAML([]byte(patchObjects[name])); err == nil {
			f.Add(asYAML, uint8(i))
		}
		for _, rows := range [][]patchRow{mergePatchRows, strategicPatchRows} {
			for _, row := range rows {
				if row.on == target && strings.HasPrefix(row.patch, "{") {
					f.Add([]byte(applied(target, row.patch)), uint8(i))
				}
			}
		}
		for _, row := range fieldRows {
			if row.on == target {
				f.Add([]byte(row.body), uint8(i))
			}
		}
		for _, row := range typeRows {
			if row.on == target {
				f.Add([]byte(row.body), uint8(i))
			}
		}
	}
	f.Add([]byte(applied("configmap", `{"metadata":{"managedFields":[{}]}}`)), uint8(0))
	f.Add([]byte("a: &a [x]\nb: &b [*a,*a]\nc: [*b,*b]\n"), uint8(0))
	h := newHarness(f, rest.Options{}, nothingStays)
	patchFixture(h)
	f.Fuzz(func(t *testing.T, body []byte, target uint8) {
		h := *h
		h.t = t
		on := patchTargets[int(target)%len(patchTargets)]
		a, now := fuzzSend(t, &h, on, "?fieldManager=x&force=true", patchMedia["apply"], body)
		if a.code >= 400 || now.code == 404 {
			return
		}
		checkWhole(t, a)
		var config map[string]any
		if err := yaml.Unmarshal(body, &config); err != nil {
			t.Fatalf("applied, but not YAML: %v", err)
		}
		checkOwned(t, now, config)
		restorePatched(t, &h, on)
	})
}

// applied makes a configuration of a patch.
func applied(on, patch string) string {
	head := map[string]string{
		"configmap":         `{"apiVersion":"v1","kind":"ConfigMap",`,
		"service":           `{"apiVersion":"v1","kind":"Service",`,
		"deployment":        `{"apiVersion":"apps/v1","kind":"Deployment",`,
		"deployment/status": `{"apiVersion":"apps/v1","kind":"Deployment",`,
		"deployment/scale":  `{"apiVersion":"autoscaling/v1","kind":"Scale",`,
	}[on]
	return strings.Replace(head+patch[1:], ",}", "}", 1)
}

// checkOwned looks up all fields that managers own.
func checkOwned(t *testing.T, a answer, config map[string]any) {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(a.body), &object); err != nil {
		t.Fatal(err)
	}
	var meta struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal([]byte(a.body), &meta); err != nil {
		t.Fatal(err)
	}
	for _, entry := range meta.Metadata.ManagedFields {
		set := &fieldpath.Set{}
		if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			t.Fatalf("managed fields of %s: %v: %s", entry.Manager, err, a.body)
		}
		set.Leaves().Iterate(func(path fieldpath.Path) {
			_, there := lookUp(object, path)
			if there || entry.Manager == "x" && setToNothing(config, path) {
				return
			}
			t.Errorf("%s (%s) owns %s, which is not there: %s", entry.Manager, entry.Operation, path, a.body)
		})
	}
}

// setToNothing tells whether a configuration has a path with a value that objects omit: null,
// false, 0, an empty string, map or list.
func setToNothing(config map[string]any, path fieldpath.Path) bool {
	v, ok := lookUp(config, path)
	if !ok || v == nil {
		return ok
	}
	rv := reflect.ValueOf(v)
	return rv.IsZero() || (rv.Kind() == reflect.Map || rv.Kind() == reflect.Slice) && rv.Len() == 0
}

// lookUp follows a path into decoded JSON.
func lookUp(v any, path fieldpath.Path) (any, bool) {
	for _, step := range path {
		var ok bool
		switch {
		case step.FieldName != nil:
			fields, _ := v.(map[string]any)
			v, ok = fields[*step.FieldName]
		case step.Key != nil:
			v, ok = findItem(v, func(item any) bool { return hasKey(item, *step.Key) })
		case step.Value != nil:
			v, ok = findItem(v, func(item any) bool { return value.Equals(value.NewValueInterface(item), *step.Value) })
		case step.Index != nil:
			items, _ := v.([]any)
			if ok = *step.Index < len(items); ok {
				v = items[*step.Index]
			}
		}
		if !ok {
			return nil, false
		}
	}
	return v, true
}

func findItem(list any, is func(item any) bool) (any, bool) {
	items, _ := list.([]any)
	for _, item := range items {
		if is(item) {
			return item, true
		}
	}
	return nil, false
}

// hasKey compares the keys that an item has: a configuration may leave defaults out.
func hasKey(item any, keys value.FieldList) bool {
	fields, ok := item.(map[string]any)
	for _, key := range keys {
		if v, has := fields[key.Name]; has && !value.Equals(value.NewValueInterface(v), key.Value) {
			return false
		}
	}
	return ok
}
