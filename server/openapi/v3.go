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

// serveIndex writes an index of documents. As upstream, the media type is guessed whatever the
// client accepts, and Last-Modified is the time of the answer. A client that asks again within
// the same second would then be told 304, although a definition may have been added. So
// serveIndex never answers 304.
func serveIndex(w http.ResponseWriter, r *http.Request, index []byte) {
	if r.Header.Get("If-Modified-Since") != "" {
		r = r.Clone(r.Context())
		r.Header.Del("If-Modified-Since")
	}
	http.ServeContent(w, r, r.URL.Path, time.Now(), bytes.NewReader(index))
}

// serveGroup answers a request with the right hash in a way that lets clients keep the
// document for good, and sends one with an older hash to the newer document.
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

// buildProto takes the JSON from the cache when it is only the protobuf that is missing.
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
