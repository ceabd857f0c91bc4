package ui

import (
	"encoding/base64"
	"html"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func (a *reply) textarea() string {
	a.Helper()
	_, rest, ok := strings.Cut(a.html, "<textarea")
	if !ok {
		a.Fatalf("there is no text to edit:\n%s", a.html)
	}
	_, rest, _ = strings.Cut(rest, ">")
	text, _, _ := strings.Cut(rest, "</textarea>")
	return strings.TrimPrefix(html.UnescapeString(text), "\n")
}

// TestEdit: a text is tried first, which writes nothing and shows what would change, and then written.
func TestEdit(t *testing.T) {
	b := newWorkbench(t)
	b.make("configmaps", "default", `{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {k: %q}}`, hostile)
	form := b.open("objects/configmaps/default/one/edit").is(200).hasNot("managedFields", "<script>alert")
	text := strings.Replace(form.textarea(), "data:\n", "data:\n  new: </textarea><script>\n", 1)
	preview := b.post("objects/configmaps/default/one/edit", "step", "preview", "rv", form.field("rv"), "text", text).is(200)
	preview.has(`<tr class="add">`, `<span class="t-s"></textarea><script></span>`, "What would change", "Write it").hasNot("</textarea><script>")
	if preview.textarea() != text {
		t.Errorf("the text is not kept: %q", preview.textarea())
	}
	if b.now("configmaps", "default", "one").GetResourceVersion() != form.field("rv") {
		t.Error("the preview has written")
	}
	done := b.post("objects/configmaps/default/one/edit", "step", "write", "rv", preview.field("rv"), "text", text).is(303)
	value, _, _ := unstructured.NestedString(b.now("configmaps", "default", "one").Object, "data", "new")
	if value != "</textarea><script>" || done.at != "/x/objects/configmaps/default/one?done=written" {
		t.Errorf("written is %q, then comes %s", value, done.at)
	}
	b.open(done.at).is(200).has("Written.")
	managers := b.now("configmaps", "default", "one").GetManagedFields()
	if !slices.ContainsFunc(managers, func(m metav1.ManagedFieldsEntry) bool { return m.Manager == "plinth-ui" }) {
		t.Errorf("the managers are %v", managers)
	}
}

// TestEditRefused: what is wrong is told in the server's words, nothing is written, and the text is kept.
func TestEditRefused(t *testing.T) {
	b := newWorkbench(t)
	b.make("configmaps", "default", `{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {k: v}}`)
	path := "objects/configmaps/default/one/edit"
	form := b.open(path)
	old, rv := form.textarea(), form.field("rv")
	for name, c := range map[string]struct {
		text string
		code int
		want string
	}{
		"no YAML":       {"a: [", 422, "This is no YAML"},
		"twice":         {old + "kind: ConfigMap\n", 422, "already set"},
		"empty":         {"", 422, "The text is empty"},
		"unknown field": {old + "dada: {}\n", 400, `unknown field "dada"`},
		"invalid":       {strings.Replace(old, "  k: v", "  ü: v", 1), 422, "a valid config key"},
		"another name":  {strings.Replace(old, "name: one", "name: two", 1), 400, "name"},
		"another kind":  {strings.Replace(old, "kind: ConfigMap", "kind: Secret", 1), 400, "Secret"},
		"no object":     {"[1, 2]", 422, "This is no YAML"},
	} {
		for _, step := range []string{"preview", "write"} {
			page := b.post(path, "step", step, "rv", rv, "text", c.text).is(c.code).has(c.want)
			if page.textarea() != c.text {
				t.Errorf("%s: the text is not kept: %q", name, page.textarea())
			}
		}
	}
	if b.now("configmaps", "default", "one").GetResourceVersion() != rv || b.now("configmaps", "default", "two") != nil {
		t.Error("something was written")
	}
}

// TestEditGone: what somebody has written is not lost when the object is deleted meanwhile. Addresses of nothing say so.
func TestEditGone(t *testing.T) {
	b := newWorkbench(t)
	b.open("objects/configmaps/default/one/edited").is(404).has("There is no page here.", "<nav")
	const text = "data:\n  k: </textarea><script>typed\n"
	gone := b.post("objects/configmaps/default/one/edit", "step", "preview", "rv", "5", "text", text).is(404).has("What you had written")
	if gone.textarea() != text {
		t.Errorf("the text is %q", gone.textarea())
	}
}

// TestEditConflict: what was changed meanwhile is not overwritten, and the text can be tried against it.
func TestEditConflict(t *testing.T) {
	b := newWorkbench(t)
	one := b.make("configmaps", "default", `{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {k: v}}`)
	path := "objects/configmaps/default/one/edit"
	form := b.open(path)
	text := strings.Replace(form.textarea(), "k: v", "k: mine", 1)
	_ = unstructured.SetNestedField(one.Object, "theirs", "data", "k")
	if _, err := b.of("configmaps", "default").Update(b.Context(), one, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	conflict := b.post(path, "step", "write", "rv", form.field("rv"), "text", text).is(409).has("Changed meanwhile", "the object has been modified", "Preview this text against what is there now")
	preview := b.post(path, "anew", b.now("configmaps", "default", "one").GetResourceVersion(), "rv", conflict.field("rv"), "text", text).is(200).has("<mark>theirs</mark>", "<mark>mine</mark>")
	b.post(path, "step", "write", "rv", preview.field("rv"), "text", text).is(303)
}

// TestEditSecret: the values of a Secret are nowhere on a page before they are asked for.
func TestEditSecret(t *testing.T) {
	b := newWorkbench(t)
	b.make("secrets", "default", `{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {password: hunter2}}`)
	hidden := base64.StdEncoding.EncodeToString([]byte("hunter2"))
	b.open("objects/secrets/default/s/edit").is(200).has("Show values and edit").hasNot(hidden)
	b.post("objects/secrets/default/s/edit", "step", "preview", "rv", "1", "text", "a: b").is(200).hasNot(hidden)
	form := b.open("objects/secrets/default/s/edit?reveal=1").is(200).has(hidden)
	text := strings.Replace(form.textarea(), hidden, base64.StdEncoding.EncodeToString([]byte("other")), 1)
	b.post("objects/secrets/default/s/edit?reveal=1", "step", "write", "rv", form.field("rv"), "text", text).is(303)
	b.open("objects/secrets/default/s/edit?reveal=1&at=" + form.field("rv")).is(400).has("cannot be changed")
}

// TestEditInBrowser: a change by keys alone, from the object's page to the written one.
func TestEditInBrowser(t *testing.T) {
	w := newWorkbench(t)
	w.make("configmaps", "default", `{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {k: v}}`)
	b := tabAt(t, w.page.URL+"/x/", "")
	b.open("objects/configmaps/default/one/edit")
	b.wait(`!!document.querySelector("textarea")`)
	eval[int](b, `(() => { const t = document.querySelector("textarea"); t.focus(); const at = t.value.indexOf("k: v") + 4; t.setSelectionRange(at, at); return at; })()`)
	b.keys("\rnew: x")
	b.wait(`document.querySelector("textarea").value.includes("  k: v\n  new: x\n")`)
	eval[int](b, `document.querySelector("button[value=preview]").focus(), 1`)
	b.keys("\r")
	b.sees("What would change")
	b.accessible()
	eval[int](b, `document.querySelector("button[value=write]").focus(), 1`)
	b.keys("\r")
	b.sees("Written.")
	b.sound()
	if data := w.now("configmaps", "default", "one").Object["data"].(map[string]any); data["new"] != "x" {
		t.Errorf("data is %v", data)
	}
}

// TestEditLargeNumbers: a number that nobody has touched stays as it is.
func TestEditLargeNumbers(t *testing.T) {
	b := newWorkbench(t)
	b.make("customresourcedefinitions.v1.apiextensions.k8s.io", "", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: sums.example.com}, spec: {group: example.com, scope: Namespaced,
  names: {plural: sums, singular: sum, kind: Sum}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {sum: {type: integer, format: int64}, k: {type: string}}}}}]}}`)
	var made bool
	for range 200 {
		if page := b.open("objects/sums.example.com/default/none"); page.code == 404 && !strings.Contains(page.html, "does not have the type") {
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Sum", "metadata": map[string]any{"name": "one"}, "sum": int64(1700000000123456789), "k": "v"}}
			if _, err := b.of("sums.v1.example.com", "default").Create(t.Context(), o, metav1.CreateOptions{}); err == nil {
				made = true
				break
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	if !made {
		t.Fatal("the kind is not served")
	}
	page := b.open("objects/sums.example.com/default/one/edit").is(200).has("sum: 1700000000123456789")
	text := strings.Replace(html.UnescapeString(page.html[strings.Index(page.html, "apiVersion: example"):strings.Index(page.html, "</textarea>")]), "k: v", "k: w", 1)
	b.post("objects/sums.example.com/default/one/edit", "text", text, "rv", page.field("rv"), "step", "write").is(303)
	if o := b.now("sums.v1.example.com", "default", "one"); o.Object["sum"] != int64(1700000000123456789) || o.Object["k"] != "w" {
		t.Errorf("it became %v", o.Object)
	}
}
