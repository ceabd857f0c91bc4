package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/authn"
)

// inProcess is an http.RoundTripper. The handler runs in a goroutine of its own. When the
// request's context ends or the response's body is closed, its context ends and its
// writes fail. Shutdown waits for it as for every request.
type inProcess struct {
	handler func() http.Handler // called for each request: clients are made before the handler is
	ctx     context.Context     // of the server
	who     user.Info           // nil: the request says
}

// RoundTrip returns when the handler has written its header.
func (t *inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	if t.who != nil {
		ctx = authn.WithUser(ctx, t.who)
	}
	ctx, cancel := context.WithCancel(ctx)
	w := newPipeWriter(cancel)
	stop := context.AfterFunc(t.ctx, cancel)
	context.AfterFunc(ctx, w.abort)
	go func() {
		defer stop()
		w.run(t.handler(), incoming(r.WithContext(ctx)))
	}()
	select {
	case <-w.written:
	case <-ctx.Done():
		select {
		case <-w.written: // the handler has ended, which ends ctx too
		default:
			return nil, context.Cause(ctx)
		}
	}
	return w.response(r), nil
}

// incoming turns a client's request into the request that a server would read.
func incoming(r *http.Request) *http.Request {
	u := *r.URL // the client may read its own while the handler runs
	r.URL = &u
	r.RequestURI = r.URL.RequestURI()
	r.RemoteAddr = "in-process"
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.1", 1, 1
	r.Header = r.Header.Clone()
	if r.Host == "" {
		r.Host = r.URL.Host
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	return r
}

// pipeWriter is an http.ResponseWriter whose other end is an http.Response. A write
// waits for the reader, so that a slow one slows the handler down as a socket would.
type pipeWriter struct {
	header  http.Header
	once    sync.Once
	written chan struct{} // closed when code and sent are final
	code    int
	sent    http.Header

	reader *io.PipeReader
	writer *io.PipeWriter
	cancel context.CancelFunc
}

func newPipeWriter(cancel context.CancelFunc) *pipeWriter {
	w := &pipeWriter{header: http.Header{}, written: make(chan struct{}), cancel: cancel}
	w.reader, w.writer = io.Pipe()
	return w
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(code int) {
	w.once.Do(func() {
		w.code, w.sent = code, w.header.Clone()
		close(w.written)
	})
}

func (w *pipeWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.writer.Write(b)
}

// Flush is there for handlers that ask for it; every write goes out at once.
func (w *pipeWriter) Flush() { w.WriteHeader(http.StatusOK) }

// SetWriteDeadline is for http.ResponseController; only one that is past has an effect.
func (w *pipeWriter) SetWriteDeadline(t time.Time) error {
	if t.Before(time.Now()) {
		w.abort()
	}
	return nil
}

// abort fails a write that nobody reads. After the handler's end it does nothing.
func (w *pipeWriter) abort() { w.writer.CloseWithError(context.Canceled) }

func (w *pipeWriter) run(h http.Handler, r *http.Request) {
	defer r.Body.Close()
	defer w.cancel()
	defer func() {
		// A handler that breaks off its answer panics with http.ErrAbortHandler.
		if reason := recover(); reason != nil {
			w.WriteHeader(http.StatusInternalServerError)
			w.writer.CloseWithError(io.ErrUnexpectedEOF)
			return
		}
		w.WriteHeader(http.StatusOK)
		w.writer.Close()
	}()
	h.ServeHTTP(w, r)
}

func (w *pipeWriter) response(r *http.Request) *http.Response {
	return &http.Response{
		Status:        fmt.Sprintf("%d %s", w.code, http.StatusText(w.code)),
		StatusCode:    w.code,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        w.sent,
		Body:          pipeBody{w},
		ContentLength: -1,
		Request:       r,
	}
}

// pipeBody ends the handler when it is closed.
type pipeBody struct{ w *pipeWriter }

func (b pipeBody) Read(p []byte) (int, error) { return b.w.reader.Read(p) }

func (b pipeBody) Close() error {
	b.w.cancel()
	return b.w.reader.Close()
}

// InProcess returns a client configuration whose requests go straight to the server's
// handler, without sockets and TLS. Their user is who; nil stands for the
// server itself, system:apiserver in group system:masters, for controllers inside. Warnings,
// such as that of a deprecated version, are for people who write requests: the server itself
// gets none.
func (s *Server) InProcess(who user.Info) *clientrest.Config {
	var warnings clientrest.WarningHandler
	if who == nil {
		warnings = clientrest.NoWarnings{}
		who = &user.DefaultInfo{Name: user.APIServerUser, Groups: []string{user.SystemPrivilegedGroup}}
	}
	return &clientrest.Config{
		Host:           "http://plinth.invalid",
		UserAgent:      "plinth/" + Release(), // manager of what plinth writes
		QPS:            -1,
		WarningHandler: warnings,
		Transport:      &inProcess{handler: func() http.Handler { return s.guard }, ctx: s.ctx, who: who},
	}
}
