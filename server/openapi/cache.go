package openapi

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
)

// document names one document's bytes. Those of equal hash are equal.
type document struct {
	path   string // below /openapi/
	hash   string
	format string
}

// cache holds finished documents, compressed. Building one takes many times the memory
// that its bytes do, so that only one is built at a time.
type cache struct {
	building sync.Mutex // held while a document is built

	mu   sync.Mutex
	docs map[document][]byte // guarded by mu
}

// get returns the compressed bytes of doc; build makes its JSON.
func (c *cache) get(s *description, doc document, build func() ([]byte, error)) ([]byte, error) {
	if b := c.find(doc); b != nil {
		return b, nil
	}
	c.building.Lock()
	defer c.building.Unlock()
	if b := c.find(doc); b != nil {
		return b, nil
	}
	b, err := c.build(doc, build)
	if err != nil {
		return nil, err
	}
	c.keep(s, doc, b)
	// A build leaves tens of megabytes of garbage, and the next one may never come. The
	// price is a collection for each of some twenty documents in the program's life.
	debug.FreeOSMemory()
	return b, nil
}

func (c *cache) build(doc document, build func() ([]byte, error)) ([]byte, error) {
	body, err := c.buildJSON(doc, build)
	if err != nil || doc.format == "json" {
		return compress(body), err
	}
	toProto := handler3.ToV3ProtoBinary
	if doc.path == "v2" {
		toProto = handler.ToProtoBinary
	}
	if body, err = toProto(body); err != nil {
		return nil, fmt.Errorf("encode as protobuf: %w", err)
	}
	return compress(body), nil
}

// buildJSON takes the JSON from the cache when it is only the protobuf that is missing.
func (c *cache) buildJSON(doc document, build func() ([]byte, error)) ([]byte, error) {
	doc.format = "json"
	if b := c.find(doc); b != nil {
		return decompress(b)
	}
	return build()
}

func (c *cache) find(doc document) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.docs[doc]
}

// keep adds a document and forgets those that have been replaced.
func (c *cache) keep(s *description, doc document, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := map[document][]byte{doc: b}
	for old, b := range c.docs {
		if s.hashOf(old.path) == old.hash {
			kept[old] = b
		}
	}
	c.docs = kept
}

func marshal(v any) ([]byte, error) { return json.Marshal(v) }

func compress(b []byte) []byte {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	_, _ = z.Write(b) // a bytes.Buffer takes everything
	_ = z.Close()
	return bytes.Clone(buf.Bytes())
}

func decompress(b []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	return io.ReadAll(z)
}

// write sends compressed as it is, or what is in it to a client that can't decompress.
func write(w http.ResponseWriter, r *http.Request, compressed []byte) error {
	w.Header().Add("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Length", strconv.Itoa(len(compressed)))
		_, _ = w.Write(compressed) // a client that is gone is nobody's error
		return nil
	}
	z, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return fmt.Errorf("decompress: %w", err)
	}
	_, _ = io.Copy(w, z)
	return nil
}
