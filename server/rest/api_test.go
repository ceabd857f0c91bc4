package rest_test

import (
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/rest"
)

// TestCreateGetUpdateDelete sends each verb for one object.
func TestCreateGetUpdateDelete(t *testing.T) {
	h := newHarness(t, rest.Options{})
	created := h.do("POST", configMaps, configMap("a", "1")).want(201)
	if created.get("metadata", "uid") == "" || created.get("metadata", "creationTimestamp") == "" {
		t.Fatalf("system fields are not set: %s", created.body)
	}
	if created.get("kind") != "ConfigMap" || created.get("apiVersion") != "v1" {
		t.Fatalf("kind or apiVersion missing: %s", created.body)
	}
	got := h.do("GET", configMaps+"/a", "").want(200)
	if got.body != created.body {
		t.Fatalf("get differs from create:\n%s\n%s", got.body, created.body)
	}
	if !strings.HasSuffix(got.body, "}\n") {
		t.Errorf("body does not end with a newline: %q", got.body)
	}
	// An update without a resourceVersion is unconditional for ConfigMaps.
	updated := h.do("PUT", configMaps+"/a", configMap("a", "2")).want(200)
	if updated.get("data", "key") != "2" || updated.get("metadata", "uid") != created.get("metadata", "uid") {
		t.Fatalf("update: %s", updated.body)
	}
	if updated.get("metadata", "resourceVersion") == created.get("metadata", "resourceVersion") {
		t.Fatal("an update did not move the resourceVersion")
	}
	same := h.do("PUT", configMaps+"/a", configMap("a", "2")).want(200)
	if same.body != updated.body {
		t.Fatalf("an update that changes nothing changed something:\n%s\n%s", same.body, updated.body)
	}
	stale := strings.Replace(created.body, `"key":"1"`, `"key":"3"`, 1)
	conflict := h.do("PUT", configMaps+"/a", stale).want(409)
	if conflict.get("reason") != "Conflict" || !strings.Contains(conflict.get("message"), "the object has been modified") {
		t.Fatalf("conflict: %s", conflict.body)
	}
	deleted := h.do("DELETE", configMaps+"/a", "").want(200)
	if deleted.get("status") != "Success" || deleted.get("details", "uid") != created.get("metadata", "uid") || deleted.get("details", "kind") != "configmaps" {
		t.Fatalf("delete: %s", deleted.body)
	}
	missing := h.do("GET", configMaps+"/a", "").want(404)
	if missing.get("message") != `configmaps "a" not found` || missing.get("reason") != "NotFound" {
		t.Fatalf("get after delete: %s", missing.body)
	}
}
