package rest

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/websocket"
)

// isWebSocket tells whether a client wants its watch as WebSocket messages.
func isWebSocket(r *http.Request) bool {
	return r.Method == http.MethodGet &&
		strings.EqualFold(r.Header.Get("Upgrade"), "websocket") &&
		strings.Contains(strings.ToLower(r.Header.Get("Connection")), "upgrade")
}

// serveWebSocket streams events as messages: text for JSON, binary for protobuf.
func (s *watching) serveWebSocket() error {
	watcher, err := s.q.api.store.Watch(s.q.kind.Prefix(), s.sel.watched(), s.from)
	if err != nil {
		return err
	}
	defer watcher.Close()
	server := websocket.Server{Handler: func(ws *websocket.Conn) {
		ctx, cancel := context.WithCancel(s.q.r.Context())
		defer cancel()
		if s.q.out.mediaType == mediaProtobuf {
			ws.PayloadType = websocket.BinaryFrame
		}
		gone := make(chan struct{})
		go func() { // ends with the connection, which the deferred Close ends
			defer close(gone)
			io.Copy(io.Discard, ws)
			cancel()
		}()
		bounded := make(chan struct{})
		go func() { // ends with ctx, which the end of run cancels
			defer close(bounded)
			s.boundWrites(ctx, ws)
		}()
		s.run(ctx, watcher, &messages{ws: ws})
		cancel()
		<-bounded
		ws.Close()
		<-gone
	}}
	server.ServeHTTP(s.q.w, s.q.r)
	return nil
}

// boundWrites lets a client that does not read keep the watch neither beyond its time nor
// beyond the server's.
func (s *watching) boundWrites(ctx context.Context, ws *websocket.Conn) {
	ws.SetWriteDeadline(time.Now().Add(s.timeout + endGrace))
	select {
	case <-s.q.api.draining:
		ws.SetWriteDeadline(time.Now().Add(endGrace))
	case <-ctx.Done():
	}
	<-ctx.Done()
}

// messages sends each write as one message. run's writes may hold several events, so
// JSON ones are split at their newlines.
type messages struct{ ws *websocket.Conn }

func (m *messages) Write(p []byte) (int, error) {
	if m.ws.PayloadType == websocket.BinaryFrame {
		return m.ws.Write(p)
	}
	for _, line := range strings.SplitAfter(string(p), "\n") {
		if line == "" {
			continue
		}
		if _, err := m.ws.Write([]byte(strings.TrimSuffix(line, "\n"))); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func (m *messages) Flush() {}
