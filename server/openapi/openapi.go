// Package openapi serves the schemas of all resources: OpenAPI v3 with one document per
// group version, and v2 with everything in one.
//
// Most servers never get a request for most of these documents, so nothing is built
// before it is asked for, and what stays in memory afterwards is compressed bytes. The
// URLs in the v3 index carry a hash that is computed from what a document is built from,
// not from the document, so that the index costs nothing either.
package openapi

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/munnerz/goautoneg"
	"k8s.io/kube-openapi/pkg/handler3"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/rest"
)

// OpenAPI answers for /openapi/v2, /openapi/v3 and what is below.
type OpenAPI struct {
	kinds *kind.Registry
	cache cache

	mu      sync.Mutex
	current *description // of the newest generation that was asked for; guarded by mu
}

// New describes what kinds holds.
func New(kinds *kind.Registry) *OpenAPI { return &OpenAPI{kinds: kinds} }

// format is one encoding of a document. accept are the subtypes of application/ that ask
// for it, contentType is what its answer has.
type format struct {
	name        string
	accept      []string
	contentType string
}

var (
	v3Formats = []format{
		{"json", []string{"json"}, "application/json"},
		{"proto", []string{"com.github.proto-openapi.spec.v3.v1.0+protobuf", "com.github.proto-openapi.spec.v3@v1.0+protobuf"},
			"application/com.github.proto-openapi.spec.v3.v1.0+protobuf"},
	}
	v2Formats = []format{
		{"json", []string{"json"}, "application/json"},
		{"proto", []string{"com.github.proto-openapi.spec.v2.v1.0+protobuf", "com.github.proto-openapi.spec.v2@v1.0+protobuf"},
			"application/com.github.proto-openapi.spec.v2.v1.0+protobuf"},
	}
)

func (o *OpenAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := o.serve(w, r); err != nil {
		rest.WriteError(w, r, err)
	}
}

func (o *OpenAPI) serve(w http.ResponseWriter, r *http.Request) error {
	s := o.describe()
	path := strings.TrimPrefix(r.URL.Path, "/openapi/")
	switch group, isGroup := strings.CutPrefix(path, "v3/"); {
	case path == "v2":
		return o.document(w, r, s, document{path: path, hash: s.hash}, v2Formats, s.buildV2)
	case path == "v3":
		return s.serveIndex(w, r)
	case isGroup && s.groups[group] != nil:
		return o.groupVersion(w, r, s, s.groups[group])
	}
	w.WriteHeader(http.StatusNotFound) // and nothing else, as upstream
	return nil
}

// describe returns the description of the registry's present generation.
func (o *OpenAPI) describe() *description {
	set := o.kinds.Set()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.current == nil || o.current.generation < set.Generation {
		o.current = describe(set)
	}
	return o.current
}

// groupVersion answers a request with the right hash in a way that lets clients keep the
// document for good, and sends one with an older hash to the newer document.
func (o *OpenAPI) groupVersion(w http.ResponseWriter, r *http.Request, s *description, g *groupVersion) error {
	doc := document{path: "v3/" + g.path, hash: g.hash}
	hash := r.URL.Query().Get("hash")
	if hash != "" && hash != g.hash {
		if _, ok := doc.announce(w, r, v3Formats); ok {
			http.Redirect(w, r, g.url(), http.StatusMovedPermanently)
		}
		return nil
	}
	if hash != "" {
		w.Header().Set("Cache-Control", "public, immutable")
		w.Header().Set("Expires", time.Now().UTC().AddDate(1, 0, 0).Format(http.TimeFormat))
	}
	return o.document(w, r, s, doc, v3Formats, g.buildV3)
}

// document answers with one document in the first format that the client likes.
func (o *OpenAPI) document(w http.ResponseWriter, r *http.Request, s *description, doc document, formats []format, build func() ([]byte, error)) error {
	f, ok := doc.announce(w, r, formats)
	if !ok {
		return nil
	}
	if r.Header.Get("If-None-Match") == doc.etag() {
		w.Header().Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	doc.format = f.name
	compressed, err := o.cache.get(s, doc, build)
	if err != nil {
		return fmt.Errorf("build %s: %w", doc.path, err)
	}
	return write(w, r, compressed)
}

// announce finds the format and writes the headers that say what the document is. If the
// client likes none, it answers 406, with nothing else, as upstream.
func (doc document) announce(w http.ResponseWriter, r *http.Request, formats []format) (format, bool) {
	w.Header().Add("Vary", "Accept")
	f, ok := negotiate(r.Header.Get("Accept"), formats)
	if !ok {
		w.WriteHeader(http.StatusNotAcceptable)
		return f, false
	}
	w.Header().Set("Content-Type", f.contentType)
	w.Header().Set("ETag", doc.etag())
	return f, true
}

func (doc document) etag() string { return strconv.Quote(doc.hash) }

func negotiate(accept string, formats []format) (format, bool) {
	if accept == "" {
		return formats[0], true
	}
	for _, clause := range goautoneg.ParseAccept(accept) {
		if clause.Type != "application" && clause.Type != "*" {
			continue
		}
		for _, f := range formats {
			for _, subtype := range f.accept {
				if clause.SubType == subtype || clause.SubType == "*" {
					return f, true
				}
			}
		}
	}
	return format{}, false
}

// serveIndex lists the documents of all group versions. Upstream leaves the media type to
// be guessed, whatever the client accepts, and the index as new as the answer.
func (s *description) serveIndex(w http.ResponseWriter, r *http.Request) error {
	index := handler3.OpenAPIV3Discovery{Paths: map[string]handler3.OpenAPIV3DiscoveryGroupVersion{}}
	for path, g := range s.groups {
		index.Paths[path] = handler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: g.url()}
	}
	body, err := marshal(index)
	if err != nil {
		return fmt.Errorf("encode index: %w", err)
	}
	http.ServeContent(w, r, r.URL.Path, time.Now(), bytes.NewReader(body))
	return nil
}

func (g *groupVersion) url() string {
	return "/openapi/v3/" + g.path + "?hash=" + url.QueryEscape(g.hash)
}
