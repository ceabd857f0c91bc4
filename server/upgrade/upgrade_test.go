package upgrade

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// A connection that a handler has taken over is closed when the context ends, and not before.
func TestUntil(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	defer end()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(Until(ctx, w)).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\nyours"); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	greeting := make([]byte, len("HTTP/1.1 101 Switching Protocols\r\n\r\nyours"))
	if _, err := io.ReadFull(conn, greeting); err != nil || !strings.HasSuffix(string(greeting), "yours") {
		t.Fatalf("%q: %v", greeting, err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the connection is not open before the context ends: %v", err)
	}
	end()
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection is not closed when the context has ended: %v", err)
	}
}

// What handlers do besides taking over a connection works as without the bound.
func TestUntilPassesOn(t *testing.T) {
	recorder := httptest.NewRecorder()
	w := Until(t.Context(), recorder)
	w.WriteHeader(http.StatusTeapot)
	w.(http.Flusher).Flush()
	if recorder.Code != http.StatusTeapot || !recorder.Flushed {
		t.Errorf("code %d, flushed: %v", recorder.Code, recorder.Flushed)
	}
	if _, _, err := http.NewResponseController(w).Hijack(); !errors.Is(err, http.ErrNotSupported) {
		t.Errorf("a writer without a connection: %v", err)
	}
}
