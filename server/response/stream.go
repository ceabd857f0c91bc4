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
// each append, and at the end End or Fail.
type Stream struct {
	B []byte

	w         http.ResponseWriter
	mediaType string
	compress  bool         // if the body is large enough
	out       io.Writer    // nil before the headers are sent
	gz        *gzip.Writer // nil if the body is not compressed
	failed    bool         // the client is gone
}

// NewStream prepares a body. Its headers are sent with its first bytes: before those the answer can still be an
// error, and a body of more than GzipThreshold can be told from a smaller one. compress says that the client
// accepts gzip.
func NewStream(w http.ResponseWriter, mediaType string, compress bool) *Stream {
	return &Stream{w: w, mediaType: mediaType, compress: compress, B: (*chunks.Get().(*[]byte))[:0]}
}

// More sends what there is if that is a chunk. It is false if the client is gone.
func (s *Stream) More() bool {
	if len(s.B) >= chunk && (s.out != nil || !s.compress || len(s.B) > GzipThreshold) {
		s.send()
	}
	return !s.failed
}

func (s *Stream) send() {
	if s.out == nil {
		s.start()
	}
	if _, err := s.out.Write(s.B); err != nil {
		s.failed = true
	}
	s.B = s.B[:0]
}

func (s *Stream) start() {
	s.w.Header()["Content-Type"] = contentTypes[s.mediaType]
	if s.compress && len(s.B) > GzipThreshold {
		s.gz = startGzip(s.w, http.StatusOK)
		s.out = s.gz
		return
	}
	s.w.WriteHeader(http.StatusOK)
	s.out = s.w
}

// End sends the rest.
func (s *Stream) End() {
	if !s.failed {
		s.send()
	}
	s.release()
}

// Fail ends a body that cannot be made. It returns err while that can still be the answer. If the headers
// are out it breaks the connection, because the client must not take this for a whole body.
func (s *Stream) Fail(err error) error {
	defer s.release()
	if s.out == nil {
		return err
	}
	panic(Broken{err})
}

// Broken is what Fail panics with.
type Broken struct{ Err error }

func (b Broken) Error() string { return "broke off a body: " + b.Err.Error() }

// release gives the memory back.
func (s *Stream) release() {
	if s.gz != nil {
		endGzip(s.gz, &gzipWriters)
	}
	if cap(s.B) <= 4*chunk {
		s.B = s.B[:0]
		chunks.Put(&s.B)
	}
}
