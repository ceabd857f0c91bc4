// Package openapi serves the schemas of all resources: OpenAPI v3 with one document for each group version,
// and v2 with everything in one document.
//
// The documents of built-in kinds are part of the program; see prebuilt.go. A document of custom resources is
// built once: by Run when its definitions have settled, or else at its first request. Only compressed bytes
// stay in memory. The URLs in the v3 index contain a hash of the inputs of a document, not of the document,
// so that the index needs no build.
//
// At most two builds run at a time: one for requests, and one of Run. Other requests wait, and hold no memory
// while they do. Answers are sent from the cached compressed bytes, which all requests share.
//
// The package owns the documents and their cache. It learns only from a kind.Registry what is served, and
// does not know how definitions become Kinds.
package openapi

import (
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
	"github.com/plinth-io/plinth/server/response"
)

// OpenAPI serves /openapi/v2, /openapi/v3 and the paths below.
type OpenAPI struct {
	// CBOR reports whether CBOR is one of the media types. It is set before the first request.
	CBOR bool

	kinds  *kind.Registry
	others []string // paths of routes outside the API
	cache  cache

	mu      sync.Mutex
	current *description // of the newest requested generation; guarded by mu
}

// New returns a handler for the Kinds of a registry. others are the served paths outside the API that
// upstream describes, too.
func New(kinds *kind.Registry, others ...string) *OpenAPI {
	return &OpenAPI{kinds: kinds, others: others, cache: newCache()}
}

// format is one encoding of a document. accept has the subtypes of application/ that select it in an Accept
// header; contentType is the Content-Type of the answer.
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
		response.WriteError(w, r, err)
	}
}

// newer is the longest wait for a definition to get from the log to the registry, which normally takes a
// moment.
const newer = 5 * time.Second

// serve answers from the registry's present Kinds. If a definition is newer than the registry, it waits for
// the registry and begins again; what was built before stays.
func (o *OpenAPI) serve(w http.ResponseWriter, r *http.Request) error {
	for {
		changed := o.kinds.Changed()
		err := o.answer(w, r, o.describe())
		if !errors.Is(err, kind.ErrReplaced) {
			return err
		}
		if !waitFor(r.Context(), changed) {
			return err
		}
	}
}

func waitFor(ctx context.Context, changed <-chan struct{}) bool {
	timer := time.NewTimer(newer)
	defer timer.Stop()
	select {
	case <-changed:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// answer writes the answer, and nothing if it returns an error.
func (o *OpenAPI) answer(w http.ResponseWriter, r *http.Request, s *description) error {
	path := strings.TrimPrefix(r.URL.Path, "/openapi/")
	switch group, isGroup := strings.CutPrefix(path, "v3/"); {
	case path == "v2":
		return o.serveV2(w, r, s)
	case path == "v3":
		return s.serveOwnIndex(w, r)
	case isGroup && s.groups[group] != nil:
		return o.serveGroup(w, r, s.groups[group])
	}
	w.WriteHeader(http.StatusNotFound) // without a body, as upstream
	return nil
}

// describe returns the description of the registry's present generation.
func (o *OpenAPI) describe() *description {
	set := o.kinds.Set()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.current == nil || o.current.generation < set.Generation {
		media := &withoutCBOR
		if o.CBOR {
			media = &withCBOR
		}
		o.current = describe(set, media, o.others, o.current)
		o.cache.prune(o.current)
	}
	return o.current
}

func (o *OpenAPI) serveV2(w http.ResponseWriter, r *http.Request, s *description) error {
	f, ok := accepted(w, r, v2Formats, "Accept", "Accept-Encoding")
	if !ok {
		return nil
	}
	return send(w, r, f, s.hash, nil, func() (body, error) { return o.v2(r.Context(), s, f.name) })
}

// send answers with a document, unless the client already has it. header has further headers.
func send(w http.ResponseWriter, r *http.Request, f format, hash string, header http.Header, get func() (body, error)) error {
	var b body
	has := hasAlready(r, hash)
	if !has {
		var err error
		if b, err = get(); err != nil {
			return fmt.Errorf("build %s: %w", r.URL.Path, err)
		}
	}
	announce(w, f, hash)
	w.Header().Add("Vary", "Accept-Encoding")
	maps.Copy(w.Header(), header)
	if has {
		w.Header().Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return b.write(w, r)
}

// hasAlready reports whether the client has the document with that hash (RFC 9110, 13.1.2).
func hasAlready(r *http.Request, hash string) bool {
	for _, header := range r.Header.Values("If-None-Match") {
		for tag := range strings.SplitSeq(header, ",") {
			tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
			if tag == "*" || tag == strconv.Quote(hash) {
				return true
			}
		}
	}
	return false
}

// accepted returns the format that the client prefers. If the client accepts none, it answers 406 with the
// header Vary and without a body, as upstream does.
func accepted(w http.ResponseWriter, r *http.Request, formats []format, vary ...string) (format, bool) {
	f, ok := negotiate(r.Header.Get("Accept"), formats)
	if !ok {
		w.Header()["Vary"] = vary
		w.WriteHeader(http.StatusNotAcceptable)
	}
	return f, ok
}

// announce sets the headers of a document.
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
