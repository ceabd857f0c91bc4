// Package upgrade bounds the life of connections that handlers take over from the server.
package upgrade

import (
	"bufio"
	"context"
	"net"
	"net/http"
)

// Until returns a writer like w whose connection, if a handler takes it over, is closed when
// ctx ends: nobody else would end it then.
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
