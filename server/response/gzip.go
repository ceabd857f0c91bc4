package response

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

// GzipThreshold is the size from which a body is compressed for clients that accept it,
// as in kube-apiserver.
const GzipThreshold = 128 << 10

// Compresses tells whether an answer is compressed if it is large: the client accepts it, and it is not switched off.
func Compresses(r *http.Request) bool {
	return AcceptsGzip(r) && utilfeature.DefaultFeatureGate.Enabled(features.APIResponseCompression)
}

// CompressesWatch does for the stream of a watch what Compresses does for other answers.
func CompressesWatch(r *http.Request) bool {
	return AcceptsGzip(r) && utilfeature.DefaultFeatureGate.Enabled(features.WatchListCompression)
}

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

// gzipStorers take bytes as they are into the format. They cost a checksum, and no more memory than the bytes.
var gzipStorers = sync.Pool{New: func() any {
	gz, _ := gzip.NewWriterLevel(nil, gzip.NoCompression)
	return gz
}}

// gzipWorthwhile is the size from which AppendGzip compresses: a part of a list, but not the event that a watch of many
// clients sends to each of them.
const gzipWorthwhile = 8 << 10

// AppendGzip appends p as a gzip stream of its own, which a reader can decompress to its end before more follows: the
// end comes in a block without data, because Go's reader keeps the data of the last block until it has seen what follows.
func AppendGzip(b, p []byte) []byte {
	pool := &gzipStorers
	if len(p) >= gzipWorthwhile {
		pool = &gzipWriters
	}
	to := bytes.NewBuffer(b)
	gz := pool.Get().(*gzip.Writer)
	gz.Reset(to)
	gz.Write(p)
	gz.Flush()
	endGzip(gz, pool)
	return to.Bytes()
}

// BeginGzip sets the headers of a body that is compressed.
func BeginGzip(h http.Header) {
	h.Set("Content-Encoding", "gzip")
	h.Add("Vary", "Accept-Encoding")
}

func startGzip(w http.ResponseWriter, code int) *gzip.Writer {
	BeginGzip(w.Header())
	w.WriteHeader(code)
	gz := gzipWriters.Get().(*gzip.Writer)
	gz.Reset(w)
	return gz
}

func endGzip(gz *gzip.Writer, to *sync.Pool) {
	gz.Close()
	gz.Reset(io.Discard)
	to.Put(gz)
}
