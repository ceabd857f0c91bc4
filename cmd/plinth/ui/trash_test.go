package ui

import (
	"context"
	"net/url"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTrash: what was deleted and is not there is in the trash, for its namespace, kind and user, and until a moment.
func TestTrash(t *testing.T) {
	f := startPast(t)
	f.wants(f.get("trash"), 200, "The trash is empty")
	rv := f.createNotes()
	user := "carol" + hostilePast
	f.must(f.of(user, configMaps, "default").Delete(context.Background(), "notes", metav1.DeleteOptions{}))
	for _, query := range []string{"", "?ns=default", "?kind=configmaps", "?kind=cm", "?user=" + url.QueryEscape(user)} {
		f.wants(f.get("trash"+query), 200, notes+"/timeline", notes+"/undelete", "as carol&lt;script&gt;")
	}
	for _, query := range []string{"?ns=other", "?kind=secrets", "?user=ann", "?at=" + rv[3]} {
		a := f.get("trash" + query)
		f.wants(a, 200, "The trash is empty")
		f.lacks(a, notes+"/undelete")
	}
	f.wants(f.get("trash?kind="+url.QueryEscape(hostilePast)), 404, "No such kind")
	f.wants(f.get("trash?at=~1"), 400, "write a time or a revision")
	f.create(f.of("ann", configMaps, "default"), "{apiVersion: v1, kind: ConfigMap, metadata: {name: notes}}")
	f.lacks(f.get("trash"), notes+"/undelete")
}

// TestPast: lists and objects are shown as they were.
func TestPast(t *testing.T) {
	f := startPast(t)
	rv := f.createNotes()
	at := f.of("ann", configMaps, "default")
	f.must(at.Delete(context.Background(), "notes", metav1.DeleteOptions{}))
	f.create(at, "{apiVersion: v1, kind: ConfigMap, metadata: {name: later}}")
	f.wants(f.get(notes+"?at="+rv[0]), 200, "You see what was", "blue")
	f.wants(f.get(notes+"?at="+rv[1]), 200, "green")
	f.wants(f.get("objects/configmaps/default/later?at="+rv[1]), 404, "was not there at revision "+rv[1])
	a := f.get("rows/configmaps?ns=default&at=" + rv[1])
	f.wants(a, 200, `"n":"notes"`, "at="+rv[1])
	f.lacks(a, "later")
	f.wants(f.get("kinds/configmaps?at="+rv[1]), 200, "You see what was")
}
