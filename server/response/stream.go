package response

import (
	"io"
	"net/http"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// chunk is how many bytes are collected before a write to the connection: enough that the cost
// of the write (TLS records, an HTTP/2 frame) is small against them.
const chunk = 64 << 10

var chunks = sync.Pool{New: func() any {
	b := make([]byte, 0, chunk+16<<10)
	return &b
}}

// Stream is a body that is written in pieces. Callers append to B and call More after
// each append.
type Stream struct {
	B []byte

	w      io.Writer
	gz     *gzip.Writer // nil if the body is not compressed
	failed bool         // the client is gone
}

// StartStream sends the headers of a body.
func StartStream(w http.ResponseWriter, mediaType string, compress bool) *Stream {
	w.Header()["Content-Type"] = contentTypes[mediaType]
	s := &Stream{w: w, B: (*chunks.Get().(*[]byte))[:0]}
	if compress {
		s.gz = startGzip(w, http.StatusOK)
		s.w = s.gz
	} else {
		w.WriteHeader(http.StatusOK)
	}
	return s
}

// More sends what there is if that is a chunk. It is false if the client is gone.
func (s *Stream) More() bool {
	if len(s.B) >= chunk {
		s.send()
	}
	return !s.failed
}

func (s *Stream) send() {
	if _, err := s.w.Write(s.B); err != nil {
		s.failed = true
	}
	s.B = s.B[:0]
}

// End sends the rest and gives the memory back.
func (s *Stream) End() {
	if !s.failed {
		s.send()
	}
	if s.gz != nil {
		endGzip(s.gz)
	}
	if cap(s.B) <= 4*chunk {
		s.B = s.B[:0]
		chunks.Put(&s.B)
	}
}
