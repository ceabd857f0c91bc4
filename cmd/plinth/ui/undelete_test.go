package ui

import (
	"context"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/servertest"
)

// TestUndelete: what was deleted comes back as it was in the end, or at a moment, once.
func TestUndelete(t *testing.T) {
	b := newWorkbench(t)
	rv := b.createNotes()
	at := b.by("carol", configMaps, "default")
	b.open(notes + "/undelete").is(409).has("is there")
	for _, c := range []struct{ query, color string }{{"", "green"}, {"?to=" + rv[0], "blue"}} {
		b.must(at.Delete(context.Background(), "notes", metav1.DeleteOptions{}))
		preview := b.open(notes + "/undelete" + c.query)
		preview.is(200).has("as carol deleted it", "What would be created", c.color)
		done := b.submit(notes+"/undelete"+c.query, form(preview))
		if done.code != http.StatusSeeOther || b.dataOf("notes", "color") != c.color {
			t.Fatalf("the form answers with %d, and the color is %s: %s", done.code, b.dataOf("notes", "color"), done.html)
		}
		b.open(done.at).is(200).has("Brought back as revision")
		b.submit(notes+"/undelete"+c.query, form(preview)).is(409).has("has changed since")
	}
	b.open("objects/configmaps/default/nobody/undelete").is(409).has("no deletion of it is kept")
}

// TestUndeleteWith: with a namespace comes back what went with it, as far as it was chosen.
func TestUndeleteWith(t *testing.T) {
	b := newWorkbench(t, servertest.Options{Controllers: []string{"*"}})
	all := b.by("ann", namespaces, "")
	b.create(all, "{apiVersion: v1, kind: Namespace, metadata: {name: lab}}")
	at := b.by("ann", configMaps, "lab")
	for _, name := range []string{"one", "two"} {
		b.create(at, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+"}, data: {k: v}}")
	}
	b.must(b.by("bob", namespaces, "").Delete(context.Background(), "lab", metav1.DeleteOptions{}))
	b.eventually(func() bool {
		_, err := all.Get(context.Background(), "lab", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	a := b.open("trash")
	a.is(200).has("as bob", "with its namespace", "objects/namespaces/-/lab/undelete", "objects/configmaps/lab/one/undelete")
	b.open("trash?kind=namespaces").is(200).has("lab")
	b.open("trash?kind=namespaces").hasNot("configmaps/lab/one")

	b.open("objects/configmaps/lab/one/undelete").is(404).has("namespaces", "What would be created")
	preview := b.open("objects/namespaces/-/lab/undelete")
	preview.is(200).has("as bob deleted it", "configmaps/one", "configmaps/two")
	values := form(preview)
	var with []string
	for _, key := range values["with"] {
		if key != "configmaps/lab/two" {
			with = append(with, key)
		}
	}
	if len(with) == len(values["with"]) {
		t.Fatalf("the form has %q", values)
	}
	values["with"] = with
	done := b.submit("objects/namespaces/-/lab/undelete", values)
	if done.code != http.StatusSeeOther {
		t.Fatalf("the form answers with %d: %s", done.code, mainOf(done.html))
	}
	b.open(done.at).is(200).has("Brought back as revision", "that went with it")
	if _, err := at.Get(context.Background(), "one", metav1.GetOptions{}); err != nil {
		t.Errorf("one is not there: %v", err)
	}
	if _, err := at.Get(context.Background(), "two", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("two was not chosen, and answers with %v", err)
	}
}
