package ui

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plinth-io/plinth/cmd/plinth/past"
	"github.com/plinth-io/plinth/server/servertest"
)

// dataOf is a value of a ConfigMap in the namespace default.
func (b *workbench) dataOf(name, key string) string {
	b.Helper()
	o, err := b.by("", configMaps, "default").Get(context.Background(), name, metav1.GetOptions{})
	b.must(err)
	value, _, _ := unstructured.NestedString(o.Object, "data", key)
	return value
}

// TestUndo: the preview says what would change, and the form does that, once.
func TestUndo(t *testing.T) {
	b := newWorkbench(t)
	rv := b.createNotes()
	preview := b.open(notes + "/undo?to=" + rv[0])
	preview.is(200).has("state of revision "+rv[0], "<del>green</del>", "<ins>blue</ins>", `name="seen" value="`+rv[3]+`"`)
	b.open(notes + "/undo?view=side&to=" + rv[0]).is(200).has(`class="diff halves"`)
	if got := b.dataOf("notes", "color"); got != "green" {
		t.Fatalf("the preview has made it %s", got)
	}
	done := b.submit(notes+"/undo?to="+rv[0], form(preview))
	if done.code != http.StatusSeeOther || b.dataOf("notes", "color") != "blue" {
		t.Fatalf("the form answers with %d, and the color is %s: %s", done.code, b.dataOf("notes", "color"), done.html)
	}
	b.open(done.at).is(200).has("Undone: revision", "plinth-undo")
	again := b.submit(notes+"/undo?to="+rv[0], form(preview))
	again.is(409).has("has changed since you looked at it")
	b.open(notes + "/undo?to=" + rv[0]).is(200).has("It is already as it was then")
}

// TestUndoChange: one change is taken back from the timeline, and what came after it stays.
func TestUndoChange(t *testing.T) {
	b := newWorkbench(t)
	rv := b.createNotes()
	b.open(notes + "/timeline?rv=" + rv[1]).is(200).has("undo?change=" + rv[1])
	preview := b.open(notes + "/undo?change=" + rv[1])
	preview.is(200).has("Undo the change of revision "+rv[1], "<del>green</del>", "<ins>blue</ins>", "What others have changed since stays")
	annotations := b.now("configmaps", "default", "notes").GetAnnotations()
	b.submit(notes+"/undo?change="+rv[1], form(preview)).is(http.StatusSeeOther)
	if b.dataOf("notes", "color") != "blue" || len(annotations) == 0 || !maps.Equal(b.now("configmaps", "default", "notes").GetAnnotations(), annotations) {
		t.Errorf("it is %v", b.now("configmaps", "default", "notes").Object)
	}
	b.open(notes + "/undo?change=" + rv[0]).is(409).has("was created")
	b.open(notes + "/undo?change=x").is(400).has("is no revision")
}

// TestUndoMeanwhile: a form about an object that somebody has changed meanwhile writes nothing, and shows what it would do
// now.
func TestUndoMeanwhile(t *testing.T) {
	b := newWorkbench(t)
	rv := b.createNotes()
	preview := b.open(notes + "/undo?to=" + rv[0])
	b.set(b.by("carol", configMaps, "default"), "notes", "red", "data", "color")
	b.submit(notes+"/undo?to="+rv[0], form(preview)).is(409).has("has changed since you looked at it", "<del>red</del>")
	if got := b.dataOf("notes", "color"); got != "red" {
		t.Errorf("the color is %s", got)
	}
}

// TestUndoLast: without a moment the last change is taken back, and a creation by a deletion.
func TestUndoLast(t *testing.T) {
	b := newWorkbench(t)
	b.createNotes()
	preview := b.open(notes + "/undo")
	preview.is(200).has("Undo the last change", "metadata.annotations")
	if a := b.submit(notes+"/undo", form(preview)); a.code != http.StatusSeeOther {
		t.Fatalf("the form answers with %d: %s", a.code, a.html)
	}
	at := b.by("ann", configMaps, "default")
	b.create(at, "{apiVersion: v1, kind: ConfigMap, metadata: {name: draft}, data: {k: v}}")
	const draft = "objects/configmaps/default/draft"
	preview = b.open(draft + "/undo")
	preview.is(200).has("undoing it deletes it", "Delete it", "What would be deleted")
	done := b.submit(draft+"/undo", form(preview))
	_, err := at.Get(context.Background(), "draft", metav1.GetOptions{})
	if done.code != http.StatusSeeOther || !apierrors.IsNotFound(err) {
		t.Fatalf("the form answers with %d, and the object with %v", done.code, err)
	}
	b.open(done.at).is(200).has("Deleted, at revision")
	b.open(draft+"/undo").is(409).has("was deleted", "Bring it back")
}

// TestUndoPinned: a moment that says how long ago means the same in the form as in the preview, however much later the form
// is sent.
func TestUndoPinned(t *testing.T) {
	now := time.Date(2026, 11, 29, 14, 0, 0, 123456789, time.UTC)
	for _, text := range []string{"2h", "3d", "13:00", "2026-11-28 10:00", "4711", "~2", "now"} {
		before, err := past.ParseMoment("to", text, now)
		if err != nil {
			t.Fatal(err)
		}
		if pinned(before) == "" && before.IsNow() {
			continue
		}
		later, err := past.ParseMoment("to", pinned(before), now.Add(50*time.Hour))
		if err != nil || !later.Time.Equal(before.Time) || later.Revision != before.Revision || later.Back != before.Back {
			t.Errorf("%s is %v, and later, as %s, it is %v, %v", text, before, pinned(before), later, err)
		}
	}
}

// TestUndoBad: what cannot be undone, and a form from elsewhere.
func TestUndoBad(t *testing.T) {
	b := newWorkbench(t, servertest.Options{Controllers: []string{"clusterrole-aggregation-controller"}})
	rv := b.createNotes()
	b.open(notes + "/undo?to=" + url.QueryEscape(hostilePast)).is(400).has("Not understood")
	b.open(notes + "/undo?to=1").is(409).has("was not there at revision 1")
	values := form(b.open(notes + "/undo?to=" + rv[0]))
	r := b.request(http.MethodPost, notes+"/undo", strings.NewReader(values.Encode()))
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if a := b.do(r); a.code != http.StatusForbidden {
		t.Errorf("a form of another page is answered with %d", a.code)
	}
	rbac := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource}
	}
	b.create(b.by("", rbac("clusterroles"), ""), `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reader}, rules: [{apiGroups: ["", history.plinth.io], resources: [configmaps, changes, versions], verbs: [get, list]}]}`)
	b.create(b.by("", rbac("clusterrolebindings"), ""), "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: eve}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}, subjects: [{kind: User, name: eve}]}")
	b = b.as("eve")
	b.eventually(func() bool { return b.open(notes+"/timeline").code == 200 })
	b.submit(notes+"/undo?to="+rv[0], values).is(403).has("forbidden", "No right to do this")
	if got := b.dataOf("notes", "color"); got != "green" {
		t.Errorf("the color is %s", got)
	}
}
