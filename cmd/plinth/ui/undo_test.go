package ui

import (
	"context"
	"net/http"
	"net/http/httptest"
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
func (f *pastFixture) dataOf(name, key string) string {
	f.Helper()
	o, err := f.of("", configMaps, "default").Get(context.Background(), name, metav1.GetOptions{})
	f.must(err)
	value, _, _ := unstructured.NestedString(o.Object, "data", key)
	return value
}

// TestUndo: the preview says what would change, and the form does that, once.
func TestUndo(t *testing.T) {
	f := startPast(t)
	rv := f.createNotes()
	preview := f.get(notes + "/undo?to=" + rv[0])
	f.wants(preview, 200, "state of revision "+rv[0], "<del>green</del>", "<ins>blue</ins>", `name="seen" value="`+rv[3]+`"`)
	f.wants(f.get(notes+"/undo?view=side&to="+rv[0]), 200, `class="diff halves"`)
	if got := f.dataOf("notes", "color"); got != "green" {
		t.Fatalf("the preview has made it %s", got)
	}
	done := f.post(notes+"/undo?to="+rv[0], form(preview))
	if done.code != http.StatusSeeOther || f.dataOf("notes", "color") != "blue" {
		t.Fatalf("the form answers with %d, and the color is %s: %s", done.code, f.dataOf("notes", "color"), done.body)
	}
	f.wants(f.get(strings.TrimPrefix(done.location, "/x/")), 200, "Undone: revision", "plinth-undo")
	again := f.post(notes+"/undo?to="+rv[0], form(preview))
	f.wants(again, 409, "has changed since you looked at it")
	f.wants(f.get(notes+"/undo?to="+rv[0]), 200, "It is already as it was then")
}

// TestUndoMeanwhile: a form about an object that somebody has changed meanwhile writes nothing, and shows what it would do
// now.
func TestUndoMeanwhile(t *testing.T) {
	f := startPast(t)
	rv := f.createNotes()
	preview := f.get(notes + "/undo?to=" + rv[0])
	f.set(f.of("carol", configMaps, "default"), "notes", "red", "data", "color")
	f.wants(f.post(notes+"/undo?to="+rv[0], form(preview)), 409, "has changed since you looked at it", "<del>red</del>")
	if got := f.dataOf("notes", "color"); got != "red" {
		t.Errorf("the color is %s", got)
	}
}

// TestUndoLast: without a moment the last change is taken back, and a creation by a deletion.
func TestUndoLast(t *testing.T) {
	f := startPast(t)
	f.createNotes()
	preview := f.get(notes + "/undo")
	f.wants(preview, 200, "The last change is taken back", "metadata.annotations")
	if a := f.post(notes+"/undo", form(preview)); a.code != http.StatusSeeOther {
		t.Fatalf("the form answers with %d: %s", a.code, a.body)
	}
	at := f.of("ann", configMaps, "default")
	f.create(at, "{apiVersion: v1, kind: ConfigMap, metadata: {name: draft}, data: {k: v}}")
	const draft = "objects/configmaps/default/draft"
	preview = f.get(draft + "/undo")
	f.wants(preview, 200, "undoing it deletes it", "Delete it", "What would be deleted")
	done := f.post(draft+"/undo", form(preview))
	_, err := at.Get(context.Background(), "draft", metav1.GetOptions{})
	if done.code != http.StatusSeeOther || !apierrors.IsNotFound(err) {
		t.Fatalf("the form answers with %d, and the object with %v", done.code, err)
	}
	f.wants(f.get(strings.TrimPrefix(done.location, "/x/")), 200, "Deleted, at revision")
	f.wants(f.get(draft+"/undo"), 409, "was deleted", "Bring it back")
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
	f := startPast(t, servertest.Options{Controllers: []string{"clusterrole-aggregation-controller"}})
	rv := f.createNotes()
	f.wants(f.get(notes+"/undo?to="+url.QueryEscape(hostilePast)), 400, "Not understood")
	f.wants(f.get(notes+"/undo?to=1"), 409, "was not there at revision 1")
	values := form(f.get(notes + "/undo?to=" + rv[0]))
	r := httptest.NewRequest(http.MethodPost, "/x/"+notes+"/undo", strings.NewReader(values.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if a := f.do(r); a.code != http.StatusForbidden {
		t.Errorf("a form of another page is answered with %d", a.code)
	}
	rbac := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource}
	}
	f.create(f.of("", rbac("clusterroles"), ""), `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reader}, rules: [{apiGroups: ["", history.plinth.io], resources: [configmaps, changes, versions], verbs: [get, list]}]}`)
	f.create(f.of("", rbac("clusterrolebindings"), ""), "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: eve}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}, subjects: [{kind: User, name: eve}]}")
	f.door.config = f.as("eve")
	f.eventually(func() bool { return f.get(notes+"/timeline").code == 200 })
	f.wants(f.post(notes+"/undo?to="+rv[0], values), 403, "forbidden", "No right to do this")
	if got := f.dataOf("notes", "color"); got != "green" {
		t.Errorf("the color is %s", got)
	}
}
