package ui

import (
	"context"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/servertest"
)

// TestUndelete: what was deleted comes back as it was in the end, or at a moment, once.
func TestUndelete(t *testing.T) {
	f := startPast(t)
	rv := f.createNotes()
	at := f.of("carol", configMaps, "default")
	f.wants(f.get(notes+"/undelete"), 409, "is there")
	for _, c := range []struct{ query, color string }{{"", "green"}, {"?to=" + rv[0], "blue"}} {
		f.must(at.Delete(context.Background(), "notes", metav1.DeleteOptions{}))
		preview := f.get(notes + "/undelete" + c.query)
		f.wants(preview, 200, "as carol deleted it", "What would be created", c.color)
		done := f.post(notes+"/undelete"+c.query, form(preview))
		if done.code != http.StatusSeeOther || f.dataOf("notes", "color") != c.color {
			t.Fatalf("the form answers with %d, and the color is %s: %s", done.code, f.dataOf("notes", "color"), done.body)
		}
		f.wants(f.get(strings.TrimPrefix(done.location, "/x/")), 200, "Brought back as revision")
		f.wants(f.post(notes+"/undelete"+c.query, form(preview)), 409, "has changed since")
	}
	f.wants(f.get("objects/configmaps/default/nobody/undelete"), 409, "no deletion of it is kept")
}

// TestUndeleteWith: with a namespace comes back what went with it, as far as it was chosen.
func TestUndeleteWith(t *testing.T) {
	f := startPast(t, servertest.Options{Controllers: []string{"*"}})
	all := f.of("ann", namespaces, "")
	f.create(all, "{apiVersion: v1, kind: Namespace, metadata: {name: lab}}")
	at := f.of("ann", configMaps, "lab")
	for _, name := range []string{"one", "two"} {
		f.create(at, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+"}, data: {k: v}}")
	}
	f.must(f.of("bob", namespaces, "").Delete(context.Background(), "lab", metav1.DeleteOptions{}))
	f.eventually(func() bool {
		_, err := all.Get(context.Background(), "lab", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	a := f.get("trash")
	f.wants(a, 200, "as bob", "with its namespace", "objects/namespaces/-/lab/undelete", "objects/configmaps/lab/one/undelete")
	f.wants(f.get("trash?kind=namespaces"), 200, "lab")
	f.lacks(f.get("trash?kind=namespaces"), "configmaps/lab/one")

	f.wants(f.get("objects/configmaps/lab/one/undelete"), 404, "namespaces", "What would be created")
	preview := f.get("objects/namespaces/-/lab/undelete")
	f.wants(preview, 200, "as bob deleted it", "configmaps/one", "configmaps/two")
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
	done := f.post("objects/namespaces/-/lab/undelete", values)
	if done.code != http.StatusSeeOther {
		t.Fatalf("the form answers with %d: %s", done.code, mainOf(done.body))
	}
	f.wants(f.get(strings.TrimPrefix(done.location, "/x/")), 200, "Brought back as revision", "that went with it")
	if _, err := at.Get(context.Background(), "one", metav1.GetOptions{}); err != nil {
		t.Errorf("one is not there: %v", err)
	}
	if _, err := at.Get(context.Background(), "two", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("two was not chosen, and answers with %v", err)
	}
}
