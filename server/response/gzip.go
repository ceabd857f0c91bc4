package response

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// GzipThreshold is the size from which a body is compressed for clients that accept it,
// as in kube-apiserver.
const GzipThreshold = 128 << 10

// AcceptsGzip tells whether the client accepts a body that is compressed with gzip (RFC 9110,
// 12.5.3): Accept-Encoding names gzip, in letters of any case, with a weight above 0. As for
// kube-apiserver, neither * nor the old name x-gzip stands for gzip. A weight that is no number
// counts as 1.
func AcceptsGzip(r *http.Request) bool {
	for _, header := range r.Header["Accept-Encoding"] {
		for coding := range strings.SplitSeq(header, ",") {
			name, parameters, weighted := strings.Cut(coding, ";")
			if strings.EqualFold(strings.TrimSpace(name), "gzip") {
				return !weighted || weight(parameters) > 0
			}
		}
	}
	return false
}

// weight is the value of the parameter q; 1 if there is none.
func weight(parameters string) float64 {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(parameter, "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			if q, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
				return q
			}
		}
	}
	return 1
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
