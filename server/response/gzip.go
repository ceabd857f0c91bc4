package response

import (
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// GzipThreshold is the size from which a body is compressed for clients that accept it,
// as in kube-apiserver.
const GzipThreshold = 128 << 10

// AcceptsGzip tells whether the client accepts a compressed body.
func AcceptsGzip(r *http.Request) bool {
	for _, token := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		if strings.TrimSpace(token) == "gzip" {
			return true
		}
	}
	return false
}

// gzipWriters compress at the fastest level, as upstream's do.
var gzipWriters = sync.Pool{New: func() any {
	gz, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	return gz
}}

func startGzip(w http.ResponseWriter, code int) *gzip.Writer {
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Add("Vary", "Accept-Encoding")
	w.WriteHeader(code)
	gz := gzipWriters.Get().(*gzip.Writer)
	gz.Reset(w)
	return gz
}

func endGzip(gz *gzip.Writer) {
	gz.Close()
	gz.Reset(io.Discard)
	gzipWriters.Put(gz)
}
