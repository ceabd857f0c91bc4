package manifest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/manifest"
)

var update = flag.Bool("update", false, "write the files in testdata/golden")

func inputs(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/*.*")
	if err != nil || len(names) < 8 {
		t.Fatal(names, err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		if files[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func text(notes []manifest.Note) string {
	var b strings.Builder
	for _, n := range notes {
		fmt.Fprintln(&b, n)
	}
	return b.String()
}

// TestGolden compares the migrated files, and what is said of them, with those in
// testdata/golden.
func TestGolden(t *testing.T) {
	for name, data := range inputs(t) {
		t.Run(name, func(t *testing.T) {
			out, notes := manifest.Migrate(data)
			golden(t, name, out)
			golden(t, name+".notes", []byte(text(notes)))
			again, more := manifest.Migrate(out)
			if !bytes.Equal(out, again) {
				t.Errorf("migrated twice:\n%s", cmp.Diff(string(out), string(again)))
			}
			for _, n := range more {
				if n.Err == nil {
					t.Errorf("the second time: %v", n)
				}
			}
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s:\n%s", name, cmp.Diff(string(want), string(got)))
	}
}

// TestSameObjects makes today's objects of what was written in old versions, as a server
// that serves those does, and of what it was migrated to: they must be the same.
func TestSameObjects(t *testing.T) {
	all, err := builtin.RemovedAPIs([]string{"all"})
	if err != nil {
		t.Fatal(err)
	}
	kinds := builtin.Kinds(builtin.Options{Removed: all})
	compared := 0
	for name, data := range inputs(t) {
		if filepath.Ext(name) != ".yaml" {
			continue
		}
		olds := bytes.Split(data, []byte("\n---\n"))
		out, _ := manifest.Migrate(data)
		news := bytes.Split(out, []byte("\n---\n"))
		if len(olds) != len(news) {
			t.Fatalf("%s: %d documents of %d", name, len(news), len(olds))
		}
		for i := range olds {
			old, new := read(olds[i]), read(news[i])
			if old == nil || old["apiVersion"] == new["apiVersion"] || old["kind"] == "IngressList" {
				continue
			}
			if strings.HasPrefix(fmt.Sprint(old["apiVersion"]), "autoscaling/v2beta") || old["apiVersion"] == "scheduling.k8s.io/v1alpha1" {
				continue // no server can serve them: their types are gone
			}
			compared++
			a, b := stored(t, kinds, olds[i], old), stored(t, kinds, news[i], new)
			if old["kind"] == "CustomResourceDefinition" {
				continue // what it keeps of unknown fields is said in another way
			}
			if diff := cmp.Diff(a, b); diff != "" {
				t.Errorf("%s, document %d:\n%s", name, i+1, diff)
			}
		}
	}
	if compared < 30 {
		t.Errorf("compared only %d objects", compared)
	}
}

func read(doc []byte) (obj map[string]any) {
	if yaml.Unmarshal(doc, &obj) != nil {
		return nil
	}
	return obj
}

// stored is what the log would hold of a document, but for its status.
func stored(t *testing.T, kinds []*kind.Kind, doc []byte, obj map[string]any) (fields map[string]any) {
	t.Helper()
	gvk := schema.FromAPIVersionAndKind(fmt.Sprint(obj["apiVersion"]), fmt.Sprint(obj["kind"]))
	i := slices.IndexFunc(kinds, func(k *kind.Kind) bool {
		return k.Group == gvk.Group && k.Kind == gvk.Kind && k.Version(gvk.Version) != nil
	})
	if i < 0 {
		t.Fatalf("no kind %v", gvk)
	}
	hub, _, err := kinds[i].Codec.Decode(doc, "application/yaml", gvk, false)
	if err != nil {
		t.Fatalf("%v: %v\n%s", gvk, err, doc)
	}
	b, err := kinds[i].Codec.Encode(hub)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &fields); err != nil {
		t.Fatal(err)
	}
	delete(fields, "status")
	return fields
}

// TestKeepsRest changes one document among others that are written in every way.
func TestKeepsRest(t *testing.T) {
	const old = "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: a}\n"
	for _, c := range []struct{ name, in, out string }{
		{"nothing", "", ""},
		{"spaces", " \n\n", " \n\n"},
		{"no newline at the end", strings.TrimSuffix(old, "\n"), strings.TrimSuffix(old, "\n")},
		{"separators", "---\n---\n" + old + "---\n\n---\n", "---\n---\n" + old + "---\n\n---\n"},
		{"comments", "# a\n--- # b\n" + old + "---   # c\na:   1", "# a\n--- # b\n" + old + "---   # c\na:   1"},
		{"carriage returns", strings.ReplaceAll("a:   b\n---\n"+old, "\n", "\r\n"), strings.ReplaceAll("a:   b\n---\n"+old, "\n", "\r\n")},
		{"behind the separator", "--- {apiVersion: policy/v1beta1, kind: PodDisruptionBudget}\n---\na:   b\n", "---\n{apiVersion: policy/v1beta1, kind: PodDisruptionBudget}\n---\na:   b\n"},
		{"a separator in a text", "a: |\n  ---\n  b\n---\n" + old, "a: |\n  ---\n  b\n---\n" + old},
		{"binary", "\x00\x01\x02", "\x00\x01\x02"},
		{"json that ends early", `{"apiVersion":"policy/v1beta1"`, `{"apiVersion":"policy/v1beta1"`},
	} {
		out, _ := manifest.Migrate([]byte(c.in))
		want := strings.ReplaceAll(c.out, "policy/v1beta1,", "policy/v1,")
		want = strings.ReplaceAll(want, "policy/v1beta1\n", "policy/v1\n")
		want = strings.ReplaceAll(want, "policy/v1beta1\r\n", "policy/v1\r\n")
		if string(out) != want {
			t.Errorf("%s:\n%s", c.name, cmp.Diff(want, string(out)))
		}
	}
}

// TestAnchors checks that anchors stay where what they stand for is the same in all places,
// and that order and comments stay in any case.
func TestAnchors(t *testing.T) {
	for _, c := range []struct{ name, in, out string }{
		{"untouched", `
# a budget
kind: PodDisruptionBudget
apiVersion: policy/v1beta1
metadata:
    labels: &labels
        app: web # of all
    name: web
spec:
    selector:
        matchLabels: *labels # the same
    minAvailable: 1
`, `
# a budget
kind: PodDisruptionBudget
apiVersion: policy/v1
metadata:
    labels: &labels
        app: web # of all
    name: web
spec:
    selector:
        matchLabels: *labels # the same
    minAvailable: 1
`},
		{"in what changes", `
apiVersion: networking.k8s.io/v1beta1
kind: Ingress
metadata: {name: web}
spec:
  # first
  rules:
  - host: a.example.com
    http: &web
      paths:
      - path: /
        pathType: Prefix
        backend: {serviceName: web, servicePort: 80} # the app
  - host: b.example.com
    http: *web # the same
`, `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  # first
  rules:
  - host: a.example.com
    http: &web
      paths:
      - path: /
        pathType: Prefix
        backend: {service: {name: web, port: {number: 80}}} # the app
  - host: b.example.com
    http:
      # the same
      paths:
      - path: /
        pathType: Prefix
        backend: {service: {name: web, port: {number: 80}}}
`},
		{"merged", `
apiVersion: batch/v1beta1
kind: CronJob
metadata:
  name: a
  annotations: &base {owner: ops} # whose
spec:
  schedule: "@daily"
  jobTemplate:
    metadata:
      annotations:
        <<: *base
        more: "yes"
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: a, image: a}]
`, `
apiVersion: batch/v1
kind: CronJob
metadata:
  name: a
  annotations: &base {owner: ops} # whose
spec:
  schedule: "@daily"
  jobTemplate:
    metadata:
      annotations:
        <<: *base
        more: "yes"
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: a, image: a}]
`},
		{"over merged fields that change", `
apiVersion: networking.k8s.io/v1beta1
kind: Ingress
metadata: {name: web}
spec:
  rules:
  - host: a.example.com
    http:
      paths:
      - path: /a
        pathType: Prefix
        backend: &web {serviceName: web, servicePort: 80}
      - path: /b # beside
        pathType: Prefix
        backend: {<<: *web, servicePort: 81}
`, `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  rules:
  - host: a.example.com
    http:
      paths:
      - path: /a
        pathType: Prefix
        backend: &web {service: {name: web, port: {number: 80}}}
      - path: /b # beside
        pathType: Prefix
        backend: {service: {name: web, port: {number: 81}}}
`},
	} {
		in, want := strings.TrimPrefix(c.in, "\n"), strings.TrimPrefix(c.out, "\n")
		if out, _ := manifest.Migrate([]byte(in)); string(out) != want {
			t.Errorf("%s:\n%s", c.name, cmp.Diff(want, string(out)))
		}
	}
}

// TestManyDocuments checks that what is migrated at once stays in order.
func TestManyDocuments(t *testing.T) {
	const n = 300
	out, notes := manifest.Migrate(manyDocuments(n))
	if want := bytes.ReplaceAll(manyDocuments(n), []byte("batch/v1beta1"), []byte("batch/v1")); !bytes.Equal(out, want) {
		t.Error(cmp.Diff(string(want), string(out)))
	}
	for i, note := range notes {
		if note.Document != 2*i+2 || note.Object != fmt.Sprint("job-", i) || note.Err != nil {
			t.Fatalf("note %d: %v", i, note)
		}
	}
	if len(notes) != n {
		t.Errorf("%d notes", len(notes))
	}
}

// manyDocuments are a ConfigMap and an old CronJob, n times.
func manyDocuments(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `apiVersion: v1
kind: ConfigMap
metadata: {name: "settings-%d"}
---
apiVersion: batch/v1beta1
kind: CronJob
metadata:
  name: job-%d # of many
spec:
  schedule: "@hourly"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - {name: main, image: "example.com/job:%d"}
---
`, i, i, i)
	}
	return b.Bytes()
}

// BenchmarkMigrate is 20,000 documents, half of which change.
func BenchmarkMigrate(b *testing.B) {
	data := manyDocuments(10_000)
	for b.Loop() {
		if _, notes := manifest.Migrate(data); len(notes) != 10_000 {
			b.Fatalf("%d notes", len(notes))
		}
	}
}

func TestNotes(t *testing.T) {
	from := schema.GroupVersionKind{Group: "batch", Version: "v1beta1", Kind: "CronJob"}
	to := schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "CronJob"}
	for want, n := range map[string]manifest.Note{
		"document 1: batch/v1beta1 CronJob a/b is now batch/v1 (removed in v1.25)": {Document: 1, From: from, To: to, Since: 25, Object: "a/b"},
		"document 2, item 3: not migrated: no":                                     {Document: 2, Item: 3, Err: errors.New("no")},
	} {
		if n.String() != want {
			t.Errorf("%q, want %q", n.String(), want)
		}
	}
}

// FuzzMigrate checks that no file breaks it, that what is migrated stays so, and that what
// is not mentioned is not changed.
func FuzzMigrate(f *testing.F) {
	for _, data := range inputs(f) {
		f.Add(data)
	}
	f.Add([]byte("apiVersion: policy/v1beta1\nkind: List\nitems: [1, {kind: a}]"))
	f.Add([]byte("--- &a\napiVersion: batch/v1beta1\nkind: CronJob\nspec: *a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<14 {
			return
		}
		out, notes := manifest.Migrate(data)
		changed := false
		for _, n := range notes {
			changed = changed || n.Err == nil
		}
		if !changed && !bytes.Equal(out, data) {
			t.Errorf("changed without a note:\n%s", cmp.Diff(string(data), string(out)))
		}
		again, more := manifest.Migrate(out)
		for _, n := range more {
			if n.Err == nil && changed {
				t.Errorf("changed again: %v\n%s\n%s", n, out, again)
			}
		}
	})
}
