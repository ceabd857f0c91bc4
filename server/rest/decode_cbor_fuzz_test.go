package rest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plinth-io/plinth/server/rest"
)

// FuzzCBOR sends random bytes as CBOR: as an object, a custom resource, a server-side apply and options
// of a deletion. An object that is accepted is the same in JSON and in CBOR, and sending it again in
// JSON changes nothing.
func FuzzCBOR(f *testing.F) {
	bodies := []string{
		toCBOR(configMap("a", "1")), toCBOR(widget), toCBOR(`{"kind":"DeleteOptions","apiVersion":"v1"}`), "\xf6", "\x80", "\xff", nested(60), nested(64),
		toCBOR(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","labels":{"a":"b"},"ownerReferences":[{}]},"spec":{"color":"red","free":{"a":[1,2.5,{"b":null}],"xyz":"xyz"}}}`),
	}
	bodies = append(bodies, strings.ReplaceAll(bodies[len(bodies)-1], "\x43xyz", "\x43x\xffz"))
	for _, body := range bodies {
		for way := range uint8(5) {
			f.Add([]byte(body), way)
		}
	}
	h := newHarness(f, rest.Options{CBOR: true}, nothingStays)
	h.serveDefinitions()
	h.define(widgets(f, "example.com"))
	ways := []struct{ method, path, media string }{
		{"POST", configMaps, inCBOR},
		{"POST", widgetsPath, inCBOR},
		{"PATCH", configMaps + "/a?fieldManager=m", applyCBOR},
		{"PATCH", widgetsPath + "/a?fieldManager=m", applyCBOR},
		{"DELETE", configMaps + "/nobody", inCBOR},
	}
	f.Fuzz(func(t *testing.T, body []byte, n uint8) {
		h := *h
		h.t = t
		way, before := ways[int(n)%len(ways)], h.store.Revision()
		a := h.do(way.method, way.path, string(body), "Content-Type", way.media)
		checkRefusal(t, &h, a, before)
		if a.code != 201 {
			return
		}
		collection, _, _ := strings.Cut(way.path, "/a?")
		h.checkEncodings(collection+"/"+a.get("metadata", "name"), a)
		h.do("DELETE", collection+"/"+a.get("metadata", "name"), "")
		if strings.Contains(a.body, `"finalizers"`) {
			h.do("PATCH", collection+"/"+a.get("metadata", "name"), `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json")
		}
	})
}

// checkEncodings reads an object that was answered in JSON.
func (h *harness) checkEncodings(path string, answered answer) {
	h.t.Helper()
	t := h.t.(*testing.T)
	got := h.do("GET", path, "").want(200)
	if got.body != answered.body {
		t.Errorf("answered %s\nread %s", answered.body, got.body)
	}
	if diff := cmp.Diff(decoded(t, got.body), decoded(t, h.do("GET", path, "", "Accept", inCBOR).want(200).asJSON().body)); diff != "" {
		t.Errorf("%s (-JSON +CBOR):\n%s", path, diff)
	}
	again := h.do("PUT", path, got.body).want(200)
	if again.get("metadata", "resourceVersion") != got.get("metadata", "resourceVersion") {
		t.Errorf("answered %s\nsent again it became %s", got.body, again.body)
	}
}
