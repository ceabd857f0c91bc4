package rest

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/websocket"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/response"
)

// isWebSocket tells whether a client wants its watch as WebSocket messages.
func isWebSocket(r *http.Request) bool {
	return r.Method == http.MethodGet &&
		strings.EqualFold(r.Header.Get("Upgrade"), "websocket") &&
		strings.Contains(strings.ToLower(r.Header.Get("Connection")), "upgrade")
}

// serveWebSocket streams events as messages: text for JSON, binary for protobuf and CBOR. As in upstream,
// a client that names no origin is refused.
func (s *watching) serveWebSocket(watcher kind.Events) {
	websocket.Handler(func(ws *websocket.Conn) {
		ctx, cancel := context.WithCancel(s.q.ctx)
		defer cancel()
		if s.q.out.Encoding() != response.JSON {
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
		s.run(ctx, watcher, &messages{ws: ws, prefixed: s.q.out.Encoding() == response.Protobuf})
		cancel()
		<-bounded
		ws.Close()
		<-gone
	}).ServeHTTP(s.q.w, s.q.r)
}

// boundWrites sets the deadlines of a client that does not read: the watch's end and the server's.
func (s *watching) boundWrites(ctx context.Context, ws *websocket.Conn) {
	ws.SetWriteDeadline(time.Now().Add(s.timeout + endGrace))
	select {
	case <-s.q.api.draining.Done():
		ws.SetWriteDeadline(time.Now().Add(endGrace))
	case <-ctx.Done():
	}
	<-ctx.Done()
}

// messages sends each event as one message.
type messages struct {
	ws       *websocket.Conn
	prefixed bool // events have their length before them, which messages have not
}

func (m *messages) Write(p []byte) (int, error) {
	message := p
	if m.prefixed {
		message = p[lengthPrefix:]
	}
	_, err := m.ws.Write(message)
	return len(p), err
}

func (m *messages) Flush()        {}
func (m *messages) OneEach() bool { return true }
