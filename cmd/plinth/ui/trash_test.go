package ui

import (
	"context"
	"net/url"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTrash: what was deleted and is not there is in the trash, for its namespace, kind and user, and until a moment.
func TestTrash(t *testing.T) {
	b := newWorkbench(t)
	b.open("trash").is(200).has("The trash is empty")
	rv := b.createNotes()
	user := "carol" + hostilePast
	b.must(b.by(user, configMaps, "default").Delete(context.Background(), "notes", metav1.DeleteOptions{}))
	for _, query := range []string{"", "?ns=default", "?kind=configmaps", "?kind=cm", "?user=" + url.QueryEscape(user)} {
		b.open("trash"+query).is(200).has(notes+"/timeline", notes+"/undelete", "as carol&lt;script&gt;")
	}
	for _, query := range []string{"?ns=other", "?kind=secrets", "?user=ann", "?at=" + rv[3]} {
		a := b.open("trash" + query)
		a.is(200).has("The trash is empty")
		a.hasNot(notes + "/undelete")
	}
	b.open("trash?kind=" + url.QueryEscape(hostilePast)).is(404).has("No such kind")
	b.open("trash?at=~1").is(400).has("write a time or a revision")
	b.create(b.by("ann", configMaps, "default"), "{apiVersion: v1, kind: ConfigMap, metadata: {name: notes}}")
	b.open("trash").hasNot(notes + "/undelete")
}

// TestPast: lists and objects are shown as they were.
func TestPast(t *testing.T) {
	b := newWorkbench(t)
	rv := b.createNotes()
	at := b.by("ann", configMaps, "default")
	b.must(at.Delete(context.Background(), "notes", metav1.DeleteOptions{}))
	b.create(at, "{apiVersion: v1, kind: ConfigMap, metadata: {name: later}}")
	b.open(notes+"?at="+rv[0]).is(200).has("You see what was", "blue")
	b.open(notes + "?at=" + rv[1]).is(200).has("green")
	b.open("objects/configmaps/default/later?at=" + rv[1]).is(404).has("was not there at revision " + rv[1])
	a := b.open("rows/configmaps?ns=default&at=" + rv[1])
	a.is(200).has(`"n":"notes"`, "at="+rv[1])
	a.hasNot("later")
	b.open("kinds/configmaps?at=" + rv[1]).is(200).has("You see what was")
}
