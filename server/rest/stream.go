package rest

import (
	"io"
	"net/http"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// chunk is what is collected before it goes to the connection: large enough that the
// cost of a write (a TLS record or several, an HTTP/2 frame) is small against its bytes.
const chunk = 64 << 10

var chunks = sync.Pool{New: func() any {
	b := make([]byte, 0, chunk+16<<10)
	return &b
}}

// stream is a body that is written in pieces. Callers append to b and call more after
// each append.
type stream struct {
	b []byte

	w      io.Writer
	gz     *gzip.Writer // nil if the body is not compressed
	failed bool         // the client is gone
}

func startStream(w http.ResponseWriter, mediaType string, compress bool) *stream {
	w.Header()["Content-Type"] = contentTypes[mediaType]
	s := &stream{w: w, b: (*chunks.Get().(*[]byte))[:0]}
	if compress {
		s.gz = startGzip(w, http.StatusOK)
		s.w = s.gz
	} else {
		w.WriteHeader(http.StatusOK)
	}
	return s
}

// more sends what there is if that is a chunk. It is false if nobody reads any more.
func (s *stream) more() bool {
	if len(s.b) >= chunk {
		s.send()
	}
	return !s.failed
}

func (s *stream) send() {
	if _, err := s.w.Write(s.b); err != nil {
		s.failed = true
	}
	s.b = s.b[:0]
}

// end sends the rest.
func (s *stream) end() {
	if !s.failed {
		s.send()
	}
	if s.gz != nil {
		endGzip(s.gz)
	}
	if cap(s.b) <= 4*chunk {
		s.b = s.b[:0]
		chunks.Put(&s.b)
	}
}
