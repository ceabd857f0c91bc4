package ui

import (
	"context"
	"regexp"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestBlame: each line has who made it what it is, and the way to the version that did.
func TestBlame(t *testing.T) {
	f := startPast(t)
	rv := f.createNotes()
	a := f.get(notes + "/blame")
	f.wants(a, 200, "timeline?rv="+rv[1], "as bob&lt;script&gt;", "&lt;script&gt;alert")
	line := func(revision, text string) {
		t.Helper()
		if !regexp.MustCompile(`rv=` + revision + `"[^>]*>` + revision + `</a>[^\n]*?` + text).MatchString(a.body) {
			t.Errorf("%q is not of revision %s:\n%s", text, revision, mainOf(a.body))
		}
	}
	line(rv[1], "green")
	line(rv[0], "large")
	a = f.get(notes + "/blame?at=" + rv[0])
	f.wants(a, 200, "blue", "You see what was")
	f.lacks(a, "green")
	f.wants(f.get(notes+"/blame?managed=1"), 200, "managedFields", "Without managed fields")
}

// TestBlameGone: of what was deleted the lines are those before the deletion.
func TestBlameGone(t *testing.T) {
	f := startPast(t)
	f.createNotes()
	f.must(f.of("", configMaps, "default").Delete(context.Background(), "notes", metav1.DeleteOptions{}))
	f.wants(f.get(notes+"/blame"), 200, "before it was deleted", "green")
	f.wants(f.get("objects/configmaps/default/nobody/blame"), 409, "no change of it is kept")
}
