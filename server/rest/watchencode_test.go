package rest_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"

	"github.com/plinth-io/plinth/server/rest"
)

// TestEventEncodings has a row for each encoding of a watch's events.
func TestEventEncodings(t *testing.T) {
	aloneAndShared(t, awayOnOthers, rest.Options{}, func(t *testing.T, h *harness) {
		h.t = t
		h.do("POST", configMaps, configMap("a", "1")).want(201)
		h.do("POST", configMaps, configMap("b", "1")).want(201)
		h.do("POST", configMaps, configMap("c", strings.Repeat("x", 140_000))).want(201)
		for _, test := range []struct {
			name, accept, media string
			fields              []string // of the second event
		}{
			{"JSON", inJSON, inJSON, []string{"object.kind=ConfigMap", "object.apiVersion=v1", "object.metadata.name=b"}},
			{"JSON: is never pretty", inJSON + ";pretty=1", inJSON, []string{"object.kind=ConfigMap"}},
			{"JSON: stream=watch", inJSON + ";stream=watch", inJSON, []string{"object.kind=ConfigMap"}},
			{"anything", "*/*", inJSON, []string{"object.kind=ConfigMap"}},
			{"protobuf: length-prefixed frames", inProtobuf, inProtobuf + ";stream=watch", []string{"object.kind=ConfigMap", "object.data.key=1"}},
			{"protobuf: stream=watch", inProtobuf + ";stream=watch," + inJSON, inProtobuf + ";stream=watch", []string{"object.kind=ConfigMap"}},
			{"tables: columns in the first event only", tableV1, inJSON, []string{"object.kind=Table", "object.columnDefinitions=", "object.rows.0.cells.0=b"}},
			{"metadata in JSON", metadataOf(inJSON, "PartialObjectMetadata", "v1"), inJSON, []string{"object.kind=PartialObjectMetadata", "object.metadata.name=b", "object.data="}},
			{"metadata in protobuf", metadataOf(inProtobuf, "PartialObjectMetadata", "v1"), inProtobuf + ";stream=watch", []string{"object.kind=PartialObjectMetadata", "object.metadata.name=b"}},
		} {
			t.Run(test.name, func(t *testing.T) {
				h.t = t
				media, events := h.stream(configMaps+"?watch=1&pretty=1&timeoutSeconds=20", test.accept, 2)
				if media != test.media || len(events) != 2 || events[0].get("object", "rows", "0", "cells", "0")+events[0].get("object", "metadata", "name") != "a" {
					t.Fatalf("%s: %+v", media, events)
				}
				for _, field := range append(test.fields, "type=ADDED") {
					path, want, _ := strings.Cut(field, "=")
					if got := events[1].get(strings.Split(path, ".")...); got != want {
						t.Errorf("%s is %q, want %q in %s", path, got, want, events[1].body)
					}
				}
			})
		}
		t.Run("protobuf: a large object", func(t *testing.T) {
			h.t = t
			if _, events := h.stream(configMaps+"?watch=1&timeoutSeconds=20", inProtobuf, 3); len(events) != 3 || len(events[2].get("object", "data", "key")) != 140_000 {
				t.Errorf("%d events", len(events))
			}
		})
		t.Run("metadata: an event is no list and ends the stream", func(t *testing.T) {
			h.t = t
			media, events := h.stream(configMaps+"?watch=1&timeoutSeconds=20", metadataOf(inJSON, "PartialObjectMetadataList", "v1"), 1)
			if media != inJSON || len(events) != 0 {
				t.Errorf("%s: %+v", media, events)
			}
		})
	})
}

// stream reads up to n events of a watch, and converts them to JSON.
func (h *harness) stream(path, accept string, n int) (media string, events []answer) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), "GET", h.http.URL+path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	media = resp.Header.Get("Content-Type")
	next, items := json.NewDecoder(resp.Body), cbor.NewFramer().NewFrameReader(resp.Body)
	for len(events) < n {
		var event json.RawMessage
		switch {
		case strings.HasPrefix(media, inProtobuf):
			event, err = readFrame(h.t, resp.Body)
		case media == "application/cbor-seq":
			event, err = readItem(h.t, items)
		default:
			err = next.Decode(&event)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			h.t.Fatal(err)
		}
		events = append(events, answer{h.t, resp.StatusCode, resp.Header, string(event)})
	}
	return media, events
}

// readItem reads one event in CBOR.
func readItem(t testing.TB, r io.Reader) (json.RawMessage, error) {
	b := make([]byte, 256<<10)
	n, err := r.Read(b)
	if err != nil {
		return nil, err
	}
	return json.RawMessage(fromCBOR(t, b[:n])), nil
}

// readFrame reads one event: its length, then a message whose object has an envelope.
func readFrame(t testing.TB, r io.Reader) (json.RawMessage, error) {
	var size uint32
	if err := binary.Read(r, binary.BigEndian, &size); err != nil {
		return nil, err
	}
	frame := make([]byte, size)
	if _, err := io.ReadFull(r, frame); err != nil {
		return nil, err
	}
	var event metav1.WatchEvent
	if err := event.Unmarshal(frame); err != nil {
		return nil, err
	}
	return json.RawMessage(fmt.Sprintf(`{"type":%q,"object":%s}`, event.Type, fromProtobuf(t, event.Object.Raw))), nil
}

// TestWatchProtobuf wants each protobuf event to be preceded by its length, and objects to be in
// envelopes ("k8s\x00").
// https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding
func TestWatchProtobuf(t *testing.T) {
	aloneAndShared(t, awayOnOthers, rest.Options{MinWatch: 15 * time.Millisecond}, func(t *testing.T, h *harness) {
		v := newWatched(h)
		a := h.do("GET", v.fill(watchPath+"labelSelector=app%3Dx&resourceVersion={first}"), "", "Accept", "application/vnd.kubernetes.protobuf").want(200)
		if got := a.head.Get("Content-Type"); got != "application/vnd.kubernetes.protobuf;stream=watch" {
			t.Errorf("Content-Type %q", got)
		}
		var got []string
		for b := []byte(a.body); len(b) > 0; {
			n := binary.BigEndian.Uint32(b)
			got = append(got, protobufEvent(t, b[4:4+n]))
			b = b[4+n:]
		}
		if want := "[DELETED ConfigMap ADDED ConfigMap MODIFIED ConfigMap ADDED ConfigMap]"; fmt.Sprint(got) != want {
			t.Errorf("got %v, want %s", got, want)
		}
	})
}

func protobufEvent(t *testing.T, b []byte) string {
	var e metav1.WatchEvent
	if err := e.Unmarshal(b); err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(e.Object.Raw, []byte("k8s\x00\n\x0f\n\x02v1\x12\tConfigMap")) {
		t.Errorf("object is not in an envelope: %q", e.Object.Raw)
	}
	return e.Type + " ConfigMap"
}

// TestInitialEventsListBlueprint has the list that the bookmark after the initial events brings, in
// each encoding. kube-apiserver's, with the feature WatchList, were recorded.
func TestInitialEventsListBlueprint(t *testing.T) {
	h := newHarness(t, rest.Options{})
	h.serveDefinitions()
	h.define(widgets(t, "example.com"))
	const options = "?watch=1&timeoutSeconds=20&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	for _, test := range []struct{ name, path, accept, want string }{
		{"JSON", configMaps, inJSON, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":null}` + "\n"},
		{"JSON of a group", "/apis/apps/v1/deployments", inJSON, `{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{},"items":null}` + "\n"},
		{"pretty is only for people", configMaps, inJSON + ";pretty=1", `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":null}` + "\n"},
		{"protobuf", configMaps, inProtobuf, fromBase64("azhzAAoTCgJ2MRINQ29uZmlnTWFwTGlzdBIICgYKABIAGgAaACIA")},
		{"protobuf, metadata", configMaps, metadataOf(inProtobuf, "PartialObjectMetadata", "v1"), fromBase64("azhzAAorCg5tZXRhLms4cy5pby92MRIZUGFydGlhbE9iamVjdE1ldGFkYXRhTGlzdBIICgYKABIAGgAaACIA")},
		{"protobuf, metadata, v1beta1", configMaps, metadataOf(inProtobuf, "PartialObjectMetadata", "v1beta1"), fromBase64("azhzAAowChNtZXRhLms4cy5pby92MWJldGExEhlQYXJ0aWFsT2JqZWN0TWV0YWRhdGFMaXN0EggSBgoAEgAaABoAIgA=")},
		{"metadata", configMaps, metadataOf(inJSON, "PartialObjectMetadata", "v1"), `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":null}` + "\n"},
		{"metadata, v1beta1", configMaps, metadataOf(inJSON, "PartialObjectMetadata", "v1beta1"), `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1beta1","metadata":{},"items":null}` + "\n"},
		{"custom resources", "/apis/example.com/v1/widgets", inJSON, `{"apiVersion":"example.com/v1","items":[],"kind":"WidgetList"}` + "\n"},
	} {
		_, events := h.stream(test.path+options, test.accept, 1)
		if len(events) != 1 || events[0].get("type") != "BOOKMARK" || events[0].get("object", "metadata", "annotations", metav1.InitialEventsAnnotationKey) != "true" {
			t.Fatalf("%s: %+v", test.name, events)
		}
		got, err := base64.StdEncoding.DecodeString(events[0].get("object", "metadata", "annotations", "kubernetes.io/initial-events-list-blueprint"))
		if err != nil || string(got) != test.want {
			t.Errorf("%s:\n got %q\nwant %q, %v", test.name, got, test.want, err)
		}
	}
	// Later bookmarks and those of other watches have no such list.
	_, events := h.stream(configMaps+"?watch=1&timeoutSeconds=3&allowWatchBookmarks=true&resourceVersion=1", inJSON, 1)
	if len(events) != 1 || strings.Contains(events[0].body, "annotations") {
		t.Errorf("a bookmark: %+v", events)
	}
}

// TestBookmarkTables has the bookmarks of watches for tables: rows of an empty object. The one after the initial events says in
// the object of its row that it is that one, also if the client wants no objects. kube-apiserver's were recorded.
func TestBookmarkTables(t *testing.T) {
	h := newHarness(t, rest.Options{BookmarkEvery: 5 * time.Millisecond})
	revision := h.do("POST", configMaps, configMap("a", "1")).want(201).get("metadata", "resourceVersion")
	const (
		ended    = `"annotations":{"k8s.io/initial-events-end":"true"}`
		metadata = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"N"%s}}`
		object   = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"N"%s}}`
	)
	for _, row := range []struct{ query, plain, end string }{
		{"", metadata, metadata},
		{"&includeObject=Metadata", metadata, metadata},
		{"&includeObject=Object", object, object},
		{"&includeObject=None", "null", metadata},
	} {
		for _, c := range []struct{ query, object string }{
			{"&resourceVersion=" + revision, strings.ReplaceAll(row.plain, "%s", "")},
			{"&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", strings.ReplaceAll(row.end, "%s", ","+ended)},
		} {
			path := configMaps + "?watch=1&allowWatchBookmarks=true&fieldSelector=metadata.name%3Dnobody" + row.query + c.query
			_, events := h.stream(path, tableV1, 2)
			for i, e := range events {
				if i == 1 { // a later one is like any other
					c.object = strings.ReplaceAll(row.plain, "%s", "")
				}
				want := `[{"cells":["",0,"\u003cunknown\u003e"],"object":` + strings.ReplaceAll(c.object, `"N"`, `"`+revision+`"`) + "}]"
				if got := e.get("object", "rows"); !sameJSON(t, got, want) || e.get("type") != "BOOKMARK" || e.get("object", "metadata", "resourceVersion") != revision {
					t.Errorf("%s: %s\nwant %s", path, e.body, want)
				}
				if columns := e.get("object", "columnDefinitions"); (columns != "") != (i == 0) {
					t.Errorf("%s: event %d has columns %s", path, i, columns)
				}
			}
		}
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	return reflect.DeepEqual(x, y)
}

func fromBase64(text string) string {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}
