package rest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/server/rest"
)

// TestWatchBookmarks: a bookmark marks that all changes up to its resourceVersion have been sent.
// Its object has the watched kind, and only resourceVersion is set.
// https://kubernetes.io/docs/reference/using-api/api-concepts/#watch-bookmarks
func TestWatchBookmarks(t *testing.T) {
	h := newHarness(t, rest.Options{BookmarkEvery: time.Millisecond, MinWatch: 100 * time.Millisecond})
	h.do("POST", configMaps, configMap("a", "1")).want(201)
	h.do("POST", "/api/v1/namespaces/other/secrets", `{"metadata":{"name":"s"}}`).want(201)
	now := fmt.Sprint(h.store.Revision())
	for _, row := range []struct{ name, accept, want string }{
		{"object", "application/json", `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"` + now + `"}}}`},
		{"metadata", asPartial, `{"type":"BOOKMARK","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"` + now + `"}}}`},
	} {
		_, raw := h.events(watchPath+"timeoutSeconds=25&allowWatchBookmarks=true&resourceVersion="+now, 2, "Accept", row.accept)
		if raw[0] != row.want || raw[1] != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.name, raw, row.want)
		}
	}
	if a := h.do("GET", watchPath+"resourceVersion="+now, "").want(200); a.body != "" {
		t.Errorf("bookmarks for nobody: %s", a.body)
	}
	if a := h.do("GET", watchPath+"allowWatchBookmarks=true&resourceVersion=9000000000", "").want(200); strings.Contains(a.body, `"`+now+`"`) {
		t.Errorf("a bookmark went back: %s", a.body)
	}
}

// TestWatchBookmarkBeforeTheEnd wants a bookmark just before a watch ends, even if the interval
// between bookmarks is longer than the watch.
func TestWatchBookmarkBeforeTheEnd(t *testing.T) {
	h := newHarness(t, rest.Options{})
	v := newWatched(h)
	start := time.Now()
	a := h.do("GET", v.fill(watchPath+"allowWatchBookmarks=1&timeoutSeconds=3&resourceVersion={now}"), "").want(200)
	if got := v.stream(a.body); got != "BOOKMARK ConfigMap@now" {
		t.Errorf("got %s", got)
	}
	if took := time.Since(start); took < 2900*time.Millisecond {
		t.Errorf("a watch of 3 seconds took %v", took)
	}
}
