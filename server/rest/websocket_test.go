package rest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"

	"github.com/plinth-io/plinth/server/rest"
)

// TestWatchWebSocket wants each event to be one message.
func TestWatchWebSocket(t *testing.T) {
	h := newHarness(t, rest.Options{MinWatch: 50 * time.Millisecond})
	v := newWatched(h)
	dial := func(path, accept string) *websocket.Conn {
		config, err := websocket.NewConfig("ws"+strings.TrimPrefix(h.http.URL, "http")+v.fill(path), h.http.URL)
		if err != nil {
			t.Fatal(err)
		}
		config.Header.Set("Accept", accept)
		ws, err := websocket.DialConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		return ws
	}
	all := func(ws *websocket.Conn, each func([]byte) string) string {
		defer ws.Close()
		var out []string
		for {
			var message []byte
			if err := websocket.Message.Receive(ws, &message); err != nil {
				return strings.Join(out, ", ")
			}
			out = append(out, each(message))
		}
	}
	text := func(b []byte) string { return v.stream(string(b)) }
	if got := all(dial(watchPath+"resourceVersion={first}", "application/json"), text); got != changes {
		t.Errorf("JSON: %s", got)
	}
	if got := all(dial(watchPath+initial+"allowWatchBookmarks=1&fieldSelector=metadata.name%3Da", asPartial), text); got != "ADDED metadata of a, BOOKMARK PartialObjectMetadata@now end" {
		t.Errorf("metadata: %s", got)
	}
	binary := func(b []byte) string { return protobufEvent(t, b) }
	if got := all(dial(watchPath+"resourceVersion=0", "application/vnd.kubernetes.protobuf"), binary); got != "ADDED ConfigMap, ADDED ConfigMap" {
		t.Errorf("protobuf: %s", got)
	}
	if err := h.store.CompactTo(t.Context(), h.store.Revision()-1); err != nil {
		t.Fatal(err)
	}
	if got := all(dial(watchPath+"resourceVersion={first}", "application/json"), text); !strings.HasPrefix(got, "ERROR 410 Expired: too old resource version: {first}") {
		t.Errorf("too old: %s", got)
	}
	upgrade := []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version", "13"}
	h.do("GET", watchPath+"resourceVersion=abc", "", upgrade...).want(500)
	h.do("GET", watchPath, "", upgrade...).want(http.StatusForbidden) // no origin
}
