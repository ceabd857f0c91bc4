package rest

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plinth-io/plinth/sqlstore"
)

// respondEntry answers with an entry of the request's own kind.
func (q *request) respondEntry(code int, e *sqlstore.Entry) error {
	if q.out.form == asMetadataList {
		return q.misfit(q.kind.Codec.New())
	}
	e, err := q.convertedEntry(e)
	if err != nil {
		return err
	}
	body, err := q.renderEntry(e)
	if err != nil {
		return err
	}
	q.auditBody(func(q *request) ([]byte, error) { return q.renderEntry(e) })
	if q.out.plain() {
		writeJSON(q.w, q.r, code, body)
		return nil
	}
	writeBody(q.w, q.r, code, q.out.mediaType, body)
	return nil
}

var newline = []byte{'\n'}

// renderEntry gives the finished body for one object. For plain output it is the stored
// JSON, without the newline.
func (q *request) renderEntry(e *sqlstore.Entry) ([]byte, error) {
	if q.out.form == asTable {
		return q.tableOf(nil, []*sqlstore.Entry{e}, q.out)
	}
	b, err := q.encodeEntry(e)
	if err != nil || q.out.plain() || q.out.mediaType == mediaProtobuf {
		return b, err
	}
	return dress(b, q.out)
}

// encodeEntry gives one object, or its metadata, as JSON or as protobuf in its envelope:
// what a body or an event is made of. It is not for tables.
func (q *request) encodeEntry(e *sqlstore.Entry) ([]byte, error) {
	protobuf := q.out.mediaType == mediaProtobuf
	if q.out.form == asMetadata {
		b, err := metadataRendering(q.kind, q.out.metaGV, protobuf).of(e)
		if err != nil || !protobuf {
			return b, err
		}
		return envelope(q.out.metaGV.String(), "PartialObjectMetadata", b)
	}
	if !protobuf {
		return objectJSON(q.kind, e, q.version)
	}
	raw, err := objectProtobuf(q.kind, e, q.version)
	if err != nil {
		return nil, err
	}
	return envelope(q.kind.GVK(q.version).GroupVersion().String(), q.kind.Kind, raw)
}

// respondObject answers with an object that is not in the log (a Scale, a review), in
// its external version with kind and apiVersion set.
func (q *request) respondObject(code int, obj runtime.Object) error {
	body, err := encodeMeta(obj, output{mediaType: q.out.mediaType, pretty: q.out.pretty})
	if err != nil {
		return err
	}
	q.auditAnswer(obj)
	writeBody(q.w, q.r, code, q.out.mediaType, body)
	return nil
}

// writeObject answers with an object of the API machinery.
func writeObject(w http.ResponseWriter, r *http.Request, code int, out output, obj runtime.Object) {
	body, err := encodeMeta(obj, out)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	writeBody(w, r, code, out.mediaType, body)
}

// writeJSON writes stored JSON, which ends without a newline.
func writeJSON(w http.ResponseWriter, r *http.Request, code int, object []byte) {
	h := w.Header()
	h["Content-Type"] = contentTypes[mediaJSON]
	size := len(object) + len(newline)
	if size > gzipThreshold && acceptsGzip(r) {
		gz := startGzip(w, code)
		defer endGzip(gz)
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
	mediaJSON:     {mediaJSON},
	mediaYAML:     {mediaYAML},
	mediaProtobuf: {mediaProtobuf},
}

// gzipThreshold is the size from which a body is compressed for clients that accept it,
// as in kube-apiserver.
const gzipThreshold = 128 << 10

func writeBody(w http.ResponseWriter, r *http.Request, code int, mediaType string, body []byte) {
	w.Header()["Content-Type"] = contentTypes[mediaType]
	if len(body) > gzipThreshold && acceptsGzip(r) {
		gz := startGzip(w, code)
		defer endGzip(gz)
		gz.Write(body)
		return
	}
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(code)
	w.Write(body)
}

func acceptsGzip(r *http.Request) bool {
	for _, token := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		if strings.TrimSpace(token) == "gzip" {
			return true
		}
	}
	return false
}

// gzipWriters are at the fastest level: upstream found the others' gain not worth it.
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
