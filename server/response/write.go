package response

import (
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
)

var newline = []byte{'\n'}

// WriteObject answers with an object of the API machinery.
func WriteObject(w http.ResponseWriter, r *http.Request, code int, out Output, obj runtime.Object) {
	body, err := Encode(obj, out)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	WriteBody(w, r, code, out.MediaType, body)
}

// WriteJSON writes stored JSON, which ends without a newline.
func WriteJSON(w http.ResponseWriter, r *http.Request, code int, object []byte) {
	h := w.Header()
	h["Content-Type"] = contentTypes[MediaJSON]
	size := len(object) + len(newline)
	if size > GzipThreshold && Compresses(r) {
		gz := startGzip(w, code)
		defer endGzip(gz, &gzipWriters)
		gz.Write(object)
		gz.Write(newline)
		return
	}
	h["Content-Length"] = []string{strconv.Itoa(size)}
	w.WriteHeader(code)
	w.Write(object)
	w.Write(newline)
}

// contentTypes saves an allocation for each response.
var contentTypes = map[string][]string{
	MediaJSON:     {MediaJSON},
	MediaYAML:     {MediaYAML},
	MediaProtobuf: {MediaProtobuf},
	MediaCBOR:     {MediaCBOR},
}

// WriteBody answers with a finished body.
func WriteBody(w http.ResponseWriter, r *http.Request, code int, mediaType string, body []byte) {
	w.Header()["Content-Type"] = contentTypes[mediaType]
	if len(body) > GzipThreshold && Compresses(r) {
		holds(w, len(body))
		gz := startGzip(w, code)
		defer endGzip(gz, &gzipWriters)
		gz.Write(body)
		return
	}
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(code)
	w.Write(body)
}

// holds tells a writer that bounds what waits for slow clients how much does: the whole body, although
// it is written in pieces.
func holds(w http.ResponseWriter, bytes int) {
	for {
		switch now := w.(type) {
		case interface{ Holds(bytes int) }:
			now.Holds(bytes)
			return
		case interface{ Unwrap() http.ResponseWriter }:
			w = now.Unwrap()
		default:
			return
		}
	}
}
