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
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/munnerz/goautoneg"

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
func New(kinds *kind.Registry) *OpenAPI { return &OpenAPI{kinds: kinds, cache: newCache()} }

// document names one document's bytes in v3. Those of equal hash are equal.
type document struct {
	path   string // below /openapi/v3/
	hash   string
	format string
}

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

// newer is how long a definition may take from the log to the registry, which is a moment.
const newer = 5 * time.Second

// serve answers with what is served now. If a definition is newer than the registry, it
// waits for the registry.
func (o *OpenAPI) serve(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), newer)
	defer cancel()
	for {
		changed := o.kinds.Changed()
		err := o.answer(w, r, o.describe())
		if !errors.Is(err, kind.ErrReplaced) {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return err
		}
	}
}

// answer writes nothing if it returns an error.
func (o *OpenAPI) answer(w http.ResponseWriter, r *http.Request, s *description) error {
	path := strings.TrimPrefix(r.URL.Path, "/openapi/")
	switch group, isGroup := strings.CutPrefix(path, "v3/"); {
	case path == "v2":
		return o.serveV2(w, r, s)
	case path == "v3":
		return s.serveIndex(w, r)
	case isGroup && s.groups[group] != nil:
		return o.serveGroup(w, r, s.groups[group])
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
		o.current = describe(set, o.current)
		o.cache.prune(o.current)
	}
	return o.current
}

// serveGroup answers a request with the right hash in a way that lets clients keep the
// document for good, and sends one with an older hash to the newer document.
func (o *OpenAPI) serveGroup(w http.ResponseWriter, r *http.Request, g *groupVersion) error {
	f, ok := accepted(w, r, v3Formats)
	if !ok {
		return nil
	}
	header := http.Header{}
	switch hash := r.URL.Query().Get("hash"); hash {
	case "":
	case g.hash:
		header.Set("Cache-Control", "public, immutable")
		header.Set("Expires", time.Now().UTC().AddDate(1, 0, 0).Format(http.TimeFormat))
	default:
		announce(w, f, g.hash)
		http.Redirect(w, r, g.url(), http.StatusMovedPermanently)
		return nil
	}
	return send(w, r, f, g.hash, header, func() (body, error) {
		c, err := o.document(r.Context(), g, document{path: g.path, hash: g.hash, format: f.name})
		return body{c}, err
	})
}

// document returns a document of v3.
func (o *OpenAPI) document(ctx context.Context, g *groupVersion, doc document) (chunk, error) {
	find := func() (chunk, bool) { return o.cache.findDoc(doc) }
	return built(ctx, &o.cache, find, func() (chunk, error) {
		b, err := o.buildDocument(g, doc)
		if err != nil {
			return chunk{}, err
		}
		c := deflate(b)
		o.cache.keepDoc(doc, c)
		if g.custom() {
			o.cache.left(c.size)
		} else {
			o.cache.left(mostGarbage) // the schemas of all of Kubernetes
		}
		return c, nil
	})
}

// buildDocument takes the JSON from the cache when it is only the protobuf that is missing.
func (o *OpenAPI) buildDocument(g *groupVersion, doc document) ([]byte, error) {
	if doc.format == "json" {
		return g.buildV3()
	}
	doc.format = "json"
	var text []byte
	var err error
	if c, ok := o.cache.findDoc(doc); ok {
		text, err = body{c}.read()
	} else {
		text, err = g.buildV3()
	}
	if err != nil {
		return nil, err
	}
	return toProto(text)
}

func (o *OpenAPI) serveV2(w http.ResponseWriter, r *http.Request, s *description) error {
	f, ok := accepted(w, r, v2Formats)
	if !ok {
		return nil
	}
	return send(w, r, f, s.hash, nil, func() (body, error) { return o.v2(r.Context(), s, f.name) })
}

// send answers with a document, unless the client has it already. header is what else is
// told of it.
func send(w http.ResponseWriter, r *http.Request, f format, hash string, header http.Header, get func() (body, error)) error {
	if r.Header.Get("If-None-Match") == strconv.Quote(hash) {
		announce(w, f, hash)
		maps.Copy(w.Header(), header)
		w.Header().Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	b, err := get()
	if err != nil {
		return fmt.Errorf("build %s: %w", r.URL.Path, err)
	}
	announce(w, f, hash)
	maps.Copy(w.Header(), header)
	return b.write(w, r)
}

// accepted finds the format that the client likes best. If it likes none, the answer is
// 406, with nothing else, as upstream.
func accepted(w http.ResponseWriter, r *http.Request, formats []format) (format, bool) {
	f, ok := negotiate(r.Header.Get("Accept"), formats)
	if !ok {
		w.Header().Set("Vary", "Accept")
		w.WriteHeader(http.StatusNotAcceptable)
	}
	return f, ok
}

// announce writes the headers that say what a document is.
func announce(w http.ResponseWriter, f format, hash string) {
	w.Header().Set("Vary", "Accept")
	w.Header().Set("Content-Type", f.contentType)
	w.Header().Set("ETag", strconv.Quote(hash))
}

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
	index, err := s.index()
	if err != nil {
		return err
	}
	http.ServeContent(w, r, r.URL.Path, time.Now(), bytes.NewReader(index))
	return nil
}
