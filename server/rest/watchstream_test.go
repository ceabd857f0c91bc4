package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"

	"github.com/plinth-io/plinth/server/rest"
	"github.com/plinth-io/plinth/sqlstore"
)

// TestWatchEventVersions wants the object of each event to have the version of the change, also if
// the object left the selection. Versions increase.
func TestWatchEventVersions(t *testing.T) {
	onEachDialect(t, awayOnOthers, rest.Options{MinWatch: 15 * time.Millisecond}, func(t *testing.T, h *harness) {
		v := newWatched(h)
		for _, selector := range []string{"", "labelSelector=app%3Dx&", "fieldSelector=metadata.name%3Da&"} {
			a := h.do("GET", v.fill(watchPath+selector+"resourceVersion={first}"), "").want(200)
			last := h.store.Floor()
			fmt.Sscan(v.vars["first"], &last)
			for _, line := range strings.Split(strings.TrimSpace(a.body), "\n") {
				var e seen
				var rv int64
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					t.Fatal(err)
				}
				if fmt.Sscan(e.Object.Metadata.ResourceVersion, &rv); rv <= last {
					t.Errorf("%s: %s is at %d after %d", selector, v.show(&e), rv, last)
				}
				last = rv
			}
		}
	})
}

// TestWatchExpired: a watch from a version that is no longer available ends with 410 Gone.
// https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
func TestWatchExpired(t *testing.T) {
	onEachDialect(t, awayOnOthers, rest.Options{MinWatch: 15 * time.Millisecond}, func(t *testing.T, h *harness) {
		v := newWatched(h)
		if err := h.store.CompactTo(t.Context(), h.store.Revision()-1); err != nil {
			t.Fatal(err)
		}
		v.set("floor", fmt.Sprint(h.store.Floor()))
		for _, row := range []struct{ name, query, want string }{
			{"too old", "resourceVersion={first}", fmt.Sprintf("ERROR 410 Expired: too old resource version: {first} (%s)", v.vars["floor"])},
			{"too old, one object", "fieldSelector=metadata.name%3Da&resourceVersion={first}", fmt.Sprintf("ERROR 410 Expired: too old resource version: {first} (%s)", v.vars["floor"])},
			{"at the floor", "resourceVersion={floor}", "ADDED a2=1/x"},
			{"state not older than what is too old", initial + "resourceVersion={first}", state},
		} {
			if got := v.watched(h.do("GET", v.fill(watchPath+row.query), "")); got != row.want {
				t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
			}
		}
		a := h.do("GET", v.fill("/api/v1/events?watch=1&resourceVersion={first}"), "")
		if got := v.watched(a); got != "ERROR 410 Expired: The resourceVersion for the provided watch is too old." {
			t.Errorf("events: %s", got)
		}
	})
}

// TestWatchSlowReader: a client that does not read for a while falls behind the window of recent
// events. When it reads again, it gets every event from the log.
func TestWatchSlowReader(t *testing.T) {
	h := newHarnessWith(t, "sqlite://:memory:", sqlstore.Options{WindowBytes: 256 << 10, StateBytes: 1}, rest.Options{})
	first := h.do("POST", configMaps, configMap("c", "0")).want(201).get("metadata", "resourceVersion")
	resp, err := http.Get(h.http.URL + watchPath + "resourceVersion=" + first)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	const writes = 200
	padding := strings.Repeat("x", 64<<10) // more in all than what kernels buffer
	for i := 1; i <= writes; i++ {
		h.do("PUT", configMaps+"/c", configMap("c", fmt.Sprint(i, " ", padding))).want(200)
	}
	d := json.NewDecoder(resp.Body)
	for i := 1; i <= writes; i++ {
		var e seen
		if err := d.Decode(&e); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
		if want := fmt.Sprint(i, " ", padding); e.Type != "MODIFIED" || e.Object.Data["key"] != want {
			t.Fatalf("event %d is %s of %.10q", i, e.Type, e.Object.Data["key"])
		}
	}
	if h.store.Stats().WatchReads == 0 {
		t.Error("the reader was not slow: nothing was read from the log")
	}
}

// TestWatchEndsBusy: a watch that has more to send than its time suffices for ends between two events when its time is over.
func TestWatchEndsBusy(t *testing.T) {
	const minWatch, objects = 15 * time.Millisecond, 1000
	h := newHarness(t, rest.Options{MinWatch: minWatch})
	from := h.do("POST", configMaps, configMap("first", "0")).want(201).get("metadata", "resourceVersion")
	h.createLarge(objects, 10)
	w := &slowWriter{ResponseRecorder: httptest.NewRecorder(), pause: 2 * minWatch}
	h.ServeHTTP(w, httptest.NewRequest("GET", fmt.Sprint(watchPath, "resourceVersion=", from), nil))
	if !strings.HasSuffix(w.Body.String(), "}\n") {
		t.Error("the end is not that of an event")
	}
	if n := strings.Count(w.Body.String(), "\n"); n == objects {
		t.Errorf("all %d events came, although the time of the watch was over after the first", n)
	}
}

// slowWriter takes what a watch may last for each write.
type slowWriter struct {
	*httptest.ResponseRecorder
	pause time.Duration
}

func (w *slowWriter) Write(p []byte) (int, error) {
	time.Sleep(w.pause)
	return w.ResponseRecorder.Write(p)
}

// TestWatchListCompression: the stream of a watch that begins with the state is compressed for clients that accept it, and each
// event can be read as soon as it has been sent.
func TestWatchListCompression(t *testing.T) {
	h := newHarness(t, rest.Options{}, nothingStays)
	h.do("POST", configMaps, configMap("first", strings.Repeat("x", 100_000))).want(201)
	const asList = "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	plain := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	t.Cleanup(plain.CloseIdleConnections)
	encoding := func(query, accept string) string {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, "GET", h.http.URL+configMaps+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept-Encoding", accept)
		resp, err := plain.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if vary := resp.Header.Get("Vary"); (vary == "Accept-Encoding") != (resp.Header.Get("Content-Encoding") == "gzip") {
			t.Errorf("%s: Vary: %s", query, vary)
		}
		return resp.Header.Get("Content-Encoding")
	}
	for _, row := range []struct{ query, accept, want string }{
		{asList, "gzip", "gzip"},
		{asList, "deflate, gzip", "gzip"},
		{asList, "identity", ""},
		{"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "gzip", ""},
		{"?watch=1&allowWatchBookmarks=true", "gzip", ""},
	} {
		if got := encoding(row.query, row.accept); got != row.want {
			t.Errorf("%s, %s: %q, want %q", row.query, row.accept, got, row.want)
		}
	}

	resp, err := http.Get(h.http.URL + configMaps + asList) // Go's client decompresses by itself
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if !resp.Uncompressed {
		t.Errorf("headers: %v", resp.Header)
	}
	events := json.NewDecoder(resp.Body)
	for i, want := range []string{"ADDED first", "BOOKMARK ", "ADDED second", "ADDED third"} {
		if i >= 2 {
			h.do("POST", configMaps, configMap(strings.Fields(want)[1], "a")).want(201)
		}
		var e seen
		if err := events.Decode(&e); err != nil {
			t.Fatal(err)
		}
		if got := e.Type + " " + e.Object.Metadata.Name; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}

	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.WatchListCompression, false)
	if got := encoding(asList, "gzip"); got != "" {
		t.Errorf("without the feature gate: %q", got)
	}
}
