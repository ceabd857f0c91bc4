package openapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"sync"
)

// cache has the built documents, compressed. A build needs many times the memory of its result, so at most
// one build for requests runs at a time, and in addition at most one of OpenAPI.Run.
type cache struct {
	building chan struct{} // has a free place while no build for a request runs

	mu     sync.Mutex
	docs   map[document]*kept          // of v3; guarded by mu
	size   int                         // of docs; guarded by mu
	uses   int64                       // of docs; guarded by mu
	shared map[[sha256.Size]byte]chunk // chunks of several docs, by the hash of their plain text; guarded by mu
	parts  map[partKey]*part           // of v2; guarded by mu
}

// kept is a document of v3.
type kept struct {
	body body
	size int   // bytes that it does not share
	used int64 // cache.uses at its last use
}

// mostKept bounds the documents of v3, in bytes. Documents of custom resources take about 10 KB
// each and are rarely requested twice. Parts of v2 are not bounded, because each request needs all
// of them; they are a fraction of their definitions, which are in memory too.
const mostKept = 16 << 20

func newCache() cache {
	return cache{
		building: make(chan struct{}, 1),
		docs:     map[document]*kept{},
		shared:   map[[sha256.Size]byte]chunk{},
		parts:    map[partKey]*part{},
	}
}

// built returns the result of find or, if that finds nothing, of build. At most one build runs at a time;
// other callers wait for its end or for ctx. build stores its result where find finds it.
func built[T any](ctx context.Context, c *cache, find func() (T, bool), build func() (T, error)) (T, error) {
	if v, ok := find(); ok {
		return v, nil
	}
	select {
	case c.building <- struct{}{}:
		defer func() { <-c.building }()
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
	if v, ok := find(); ok {
		return v, nil
	}
	return build()
}

// The types that documents of custom resources share are next to each other, because schemas are sorted.
// firstShared is the beginning of the first one, lastShared that of the last one.
var (
	firstShared = []byte(`"io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions":{`)
	lastShared  = []byte(`"io.k8s.apimachinery.pkg.apis.meta.v1.Time":{`)
)

// mostShared is the most shared chunks. There are two or three.
const mostShared = 32

// pack compresses the JSON of a document of v3. A third of a small document is a chunk that all documents
// share.
func (c *cache) pack(text []byte) body {
	begin := bytes.Index(text, firstShared)
	if begin < 0 {
		return body{deflate(text)}
	}
	end := len(text)
	if i := bytes.LastIndex(text[begin:], lastShared); i >= 0 {
		end = begin + i
	}
	return body{deflate(text[:begin]), c.share(text[begin:end]), deflate(text[end:])}
}

// share compresses a text that other documents contain, too. Equal texts have equal results.
func (c *cache) share(text []byte) chunk {
	sum := sha256.Sum256(text)
	c.mu.Lock()
	found, ok := c.shared[sum]
	c.mu.Unlock()
	if ok {
		return found
	}
	found = deflate(text)
	found.shared = true
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.shared) >= mostShared {
		clear(c.shared)
	}
	c.shared[sum] = found
	return found
}

// idle waits until no build for a request runs. It returns false if ctx ends first.
func (c *cache) idle(ctx context.Context) bool {
	select {
	case c.building <- struct{}{}:
		<-c.building
		return true
	case <-ctx.Done():
		return false
	}
}

func (c *cache) findDoc(doc document) (body, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.docs[doc]
	if k == nil {
		return nil, false
	}
	c.uses++
	k.used = c.uses
	return k.body, true
}

// keepDoc adds a document, and drops the least recently used ones if the cache is too large.
func (c *cache) keepDoc(doc document, b body) {
	size := 0
	for _, piece := range b {
		if !piece.shared {
			size += len(piece.deflated)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(doc)
	c.uses++
	c.docs[doc] = &kept{body: b, size: size, used: c.uses}
	c.size += size
	for c.size > mostKept && len(c.docs) > 1 {
		c.drop(c.oldest())
	}
}

func (c *cache) drop(doc document) {
	if k := c.docs[doc]; k != nil {
		c.size -= k.size
		delete(c.docs, doc)
	}
}

func (c *cache) oldest() (oldest document) {
	used := c.uses + 1
	for doc, k := range c.docs {
		if k.used < used {
			oldest, used = doc, k.used
		}
	}
	return oldest
}

// has reports whether a document is cached. That does not count as a use.
func (c *cache) has(doc document) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.docs[doc] != nil
}

// kept returns the bytes of the documents of v3.
func (c *cache) kept() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size
}

func (c *cache) findPart(key partKey) (*part, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.parts[key]
	return p, ok
}

func (c *cache) keepPart(key partKey, p *part) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parts[key] = p
}

// prune drops the documents and parts that s does not contain.
func (c *cache) prune(s *description) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for doc := range c.docs {
		if g := s.groups[doc.path]; g == nil || g.hash != doc.hash {
			c.drop(doc)
		}
	}
	for key := range c.parts {
		if !s.ids[key.id] {
			delete(c.parts, key)
		}
	}
}
