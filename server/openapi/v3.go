package openapi

import (
	"bytes"
	"context"
	"net/http"
	"time"
)

// document identifies a document of v3. Documents with equal hashes are equal.
type document struct {
	path   string // below /openapi/v3/
	hash   string
	format string
}

// serveOwnIndex lists the documents of all group versions.
func (s *description) serveOwnIndex(w http.ResponseWriter, r *http.Request) error {
	index, err := s.index()
	if err != nil {
		return err
	}
	serveIndex(w, r, index)
	return nil
}

// serveIndex writes an index of documents. As in upstream, the media type is guessed, whatever the client
// accepts, and Last-Modified is the time of the answer. serveIndex never answers 304: a client that asks
// again within the same second would get it even if a definition has been added in between.
func serveIndex(w http.ResponseWriter, r *http.Request, index []byte) {
	if r.Header.Get("If-Modified-Since") != "" {
		r = r.Clone(r.Context())
		r.Header.Del("If-Modified-Since")
	}
	http.ServeContent(w, r, r.URL.Path, time.Now(), bytes.NewReader(index))
}

// serveGroup serves a document. If the request has the right hash, clients may cache the document for ever;
// if it has an older hash, serveGroup redirects to the newer document.
func (o *OpenAPI) serveGroup(w http.ResponseWriter, r *http.Request, g *groupVersion) error {
	f, ok := accepted(w, r, v3Formats, "Accept")
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
		return o.document(r.Context(), g, document{path: g.path, hash: g.hash, format: f.name})
	})
}

// document returns a document of v3.
func (o *OpenAPI) document(ctx context.Context, g *groupVersion, doc document) (body, error) {
	if c, ok := g.prebuilt(doc.format); ok {
		return body{c}, nil
	}
	find := func() (body, bool) { return o.cache.findDoc(doc) }
	return built(ctx, &o.cache, find, func() (body, error) {
		b, err := o.buildDocument(g, doc)
		if err == nil {
			o.cache.keepDoc(doc, b)
		}
		return b, err
	})
}

func (o *OpenAPI) buildDocument(g *groupVersion, doc document) (body, error) {
	if doc.format != "json" {
		b, err := o.buildProto(g, doc)
		if err != nil {
			return nil, err
		}
		return body{deflate(b)}, nil
	}
	text, err := g.buildV3()
	if err != nil {
		return nil, err
	}
	return o.cache.pack(text), nil
}

// buildProto reads the JSON from the cache if only the protobuf is missing.
func (o *OpenAPI) buildProto(g *groupVersion, doc document) ([]byte, error) {
	doc.format = "json"
	var text []byte
	var err error
	if b, ok := o.cache.findDoc(doc); ok {
		text, err = b.read()
	} else {
		text, err = g.buildV3()
	}
	if err != nil {
		return nil, err
	}
	return toProto(text)
}
