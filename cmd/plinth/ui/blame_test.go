package ui

import (
	"context"
	"regexp"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestBlame: each line has who made it what it is, and the way to the version that did.
func TestBlame(t *testing.T) {
	b := newWorkbench(t)
	rv := b.createNotes()
	a := b.open(notes + "/blame")
	a.is(200).has("timeline?rv="+rv[1], "as bob&lt;script&gt;", "&lt;script&gt;alert")
	line := func(revision, text string) {
		t.Helper()
		if !regexp.MustCompile(`rv=` + revision + `"[^>]*>` + revision + `</a>[^\n]*?` + text).MatchString(a.html) {
			t.Errorf("%q is not of revision %s:\n%s", text, revision, mainOf(a.html))
		}
	}
	line(rv[1], "green")
	line(rv[0], "large")
	a = b.open(notes + "/blame?at=" + rv[0])
	a.is(200).has("blue", "You see what was")
	a.hasNot("green")
	b.open(notes+"/blame?managed=1").is(200).has("managedFields", "Without managed fields")
}

// TestBlameGone: of what was deleted the lines are those before the deletion.
func TestBlameGone(t *testing.T) {
	b := newWorkbench(t)
	b.createNotes()
	b.must(b.by("", configMaps, "default").Delete(context.Background(), "notes", metav1.DeleteOptions{}))
	b.open(notes+"/blame").is(200).has("before it was deleted", "green")
	b.open("objects/configmaps/default/nobody/blame").is(409).has("no change of it is kept")
}
