// Package upgrade bounds the life of connections that handlers take over from net/http, such
// as those of exec and of WebSockets. It must not know what goes over them.
package upgrade

import (
	"bufio"
	"context"
	"net"
	"net/http"
)

// Until returns a writer like w. If a handler takes over its connection, the connection is
// closed when ctx ends: net/http does not end it any more.
func Until(ctx context.Context, w http.ResponseWriter) http.ResponseWriter {
	return &writer{ResponseWriter: w, ctx: ctx}
}

type writer struct {
	http.ResponseWriter
	ctx context.Context
}

// Hijack implements http.Hijacker.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		context.AfterFunc(w.ctx, func() { conn.Close() })
	}
	return conn, rw, err
}

// Flush implements http.Flusher.
func (w *writer) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Unwrap gives http.ResponseController the rest.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
