package rest_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/websocket"

	"github.com/plinth-io/plinth/server/rest"
)

const inSequence = "application/cbor-seq"

// TestWatchCBOR compares streams in CBOR with those in JSON.
func TestWatchCBOR(t *testing.T) {
	h := newHarness(t, rest.Options{CBOR: true, MinWatch: 50 * time.Millisecond}, nothingStays)
	v := newWatched(h)
	h.serveDefinitions()
	h.define(widgets(t, "example.com"))
	h.do("POST", widgetsPath, widget).want(201)
	asMetadata := func(media string) string { return metadataOf(media, "PartialObjectMetadata", "v1") }
	for _, row := range []struct{ name, path, json, cbor string }{
		{"changes", watchPath + "resourceVersion={first}", inJSON, inCBOR},
		{"changes as a selector sees them", watchPath + "labelSelector=app%3Dx&resourceVersion={first}", inJSON, inCBOR + ";stream=watch"},
		{"state", watchPath + "resourceVersion=0", inJSON, inCBOR + "," + inJSON + ";q=0.5"},
		{"metadata", watchPath + "resourceVersion={first}", asMetadata(inJSON), asMetadata(inCBOR)},
		{"a path below /watch", oldPath + "?resourceVersion={first}", inJSON, inCBOR},
		{"custom resources", widgetsPath + "?watch=1", inJSON, inCBOR},
		{"metadata of custom resources", widgetsPath + "?watch=1", asMetadata(inJSON), asMetadata(inCBOR)},
		{"definitions", definitionsPath + "?watch=1", inJSON, inCBOR},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := &harness{t: t, http: h.http}
			_, want := h.stream(v.fill(row.path), row.json, 100)
			media, got := h.stream(v.fill(row.path), row.cbor, 100)
			if media != inSequence || len(want) == 0 || len(got) != len(want) {
				t.Fatalf("%s: %d events, want %d", media, len(got), len(want))
			}
			for i := range want {
				if diff := cmp.Diff(decoded(t, want[i].body), decoded(t, got[i].body)); diff != "" {
					t.Errorf("event %d (-JSON +CBOR):\n%s", i, diff)
				}
			}
		})
	}
}

// TestWatchCBORError has the event that a watch from before the oldest revision gets.
func TestWatchCBORError(t *testing.T) {
	h := newHarness(t, rest.Options{CBOR: true}, nothingStays)
	v := newWatched(h)
	if err := h.store.CompactTo(t.Context(), h.store.Revision()-1); err != nil {
		t.Fatal(err)
	}
	media, events := h.stream(v.fill(watchPath+"resourceVersion={first}"), inCBOR, 1)
	if media != inSequence || len(events) != 1 || events[0].get("type") != "ERROR" || events[0].get("object", "code") != "410" || events[0].get("object", "kind") != "Status" {
		t.Errorf("%s: %+v", media, events)
	}
}

// TestWatchCBORFrames has the bytes of an event: no map has another order than that of upstream's
// deterministic encoding, and object and event each have the tag.
func TestWatchCBORFrames(t *testing.T) {
	h := newHarness(t, rest.Options{CBOR: true, MinWatch: 15 * time.Millisecond}, nothingStays)
	h.do("POST", configMaps, configMap("a", "1")).want(201)
	object := h.do("GET", configMaps+"/a", "", "Accept", inCBOR).want(200).body
	a := h.do("GET", configMaps+"?watch=1", "", "Accept", inCBOR).want(200)
	if want := tagged + "\xa2\x44type\x45ADDED\x46object" + object; a.body != want || a.head.Get("Content-Type") != inSequence {
		t.Errorf("%s:\n got %q\nwant %q", a.head.Get("Content-Type"), a.body, want)
	}
}

// TestInitialEventsListBlueprintCBOR has the list in CBOR that the bookmark after the initial events
// brings.
func TestInitialEventsListBlueprintCBOR(t *testing.T) {
	h := newHarness(t, rest.Options{CBOR: true})
	h.serveDefinitions()
	h.define(widgets(t, "example.com"))
	const options = "?watch=1&timeoutSeconds=20&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	for _, row := range []struct{ path, accept, want string }{
		{configMaps, inCBOR, `{"apiVersion":"v1","items":null,"kind":"ConfigMapList","metadata":{}}`},
		{configMaps, metadataOf(inCBOR, "PartialObjectMetadata", "v1beta1"), `{"apiVersion":"meta.k8s.io/v1beta1","items":null,"kind":"PartialObjectMetadataList","metadata":{}}`},
		{widgetsPath, inCBOR, `{"apiVersion":"example.com/v1","items":[],"kind":"WidgetList"}`},
	} {
		_, events := h.stream(row.path+options, row.accept, 1)
		if len(events) != 1 || events[0].get("type") != "BOOKMARK" {
			t.Fatalf("%s: %+v", row.path, events)
		}
		list, err := base64.StdEncoding.DecodeString(events[0].get("object", "metadata", "annotations", "kubernetes.io/initial-events-list-blueprint"))
		if err != nil {
			t.Fatal(err)
		}
		if got := fromCBOR(t, list); got != row.want {
			t.Errorf("%s: %s, want %s", row.path, got, row.want)
		}
	}
}

// TestWatchCBORWebSocket wants each event to be one binary message.
func TestWatchCBORWebSocket(t *testing.T) {
	h := newHarness(t, rest.Options{CBOR: true, MinWatch: 50 * time.Millisecond})
	newWatched(h)
	config, err := websocket.NewConfig("ws"+strings.TrimPrefix(h.http.URL, "http")+watchPath+"resourceVersion=0", h.http.URL)
	if err != nil {
		t.Fatal(err)
	}
	config.Header.Set("Accept", inCBOR)
	ws, err := websocket.DialConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	var names []string
	for {
		var message []byte
		if err := websocket.Message.Receive(ws, &message); err != nil {
			break
		}
		names = append(names, answer{t: t, body: fromCBOR(t, message)}.get("object", "metadata", "name"))
	}
	if got := strings.Join(names, " "); got != "a a2" {
		t.Errorf("events of %s", got)
	}
}
