package openapi

import (
	"context"
	"runtime/debug"
	"sync"
)

// cache holds built documents, compressed. A build needs many times the memory of its result,
// so only one build runs at a time.
type cache struct {
	building chan struct{} // has room while no build runs
	garbage  int64         // that builds have left; guarded by building

	mu    sync.Mutex
	docs  map[document]*kept // of v3; guarded by mu
	size  int                // of docs; guarded by mu
	uses  int64              // of docs; guarded by mu
	parts map[partKey]*part  // of v2; guarded by mu
}

// kept is a document of v3.
type kept struct {
	chunk chunk
	used  int64 // cache.uses at its last use
}

// mostKept bounds the documents of v3, in bytes. All of Kubernetes takes about 200 KB. Documents
// of custom resources take about 15 KB each and are rarely requested twice. Parts of v2 are not
// bounded, because each request needs all of them; they are a fraction of their definitions,
// which are in memory too.
const mostKept = 16 << 20

func newCache() cache {
	return cache{
		building: make(chan struct{}, 1),
		docs:     map[document]*kept{},
		parts:    map[partKey]*part{},
	}
}

// built returns the result of find, or else of build. Only one build runs at a time; others wait
// until it is over or ctx ends. build keeps its result where find finds it.
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

// mostGarbage is the size of documents after whose builds garbage is collected and freed at
// once. Otherwise it would stay until other code makes as much, which may be never. A build
// leaves about twenty times the size of its document.
const mostGarbage = 2 << 20

// left is called within a build, with the size of its result.
func (c *cache) left(size int64) {
	if c.garbage += size; c.garbage >= mostGarbage {
		c.garbage = 0
		debug.FreeOSMemory()
	}
}

func (c *cache) findDoc(doc document) (chunk, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.docs[doc]
	if k == nil {
		return chunk{}, false
	}
	c.uses++
	k.used = c.uses
	return k.chunk, true
}

// keepDoc adds a document and drops the least recently used ones if there are too many.
func (c *cache) keepDoc(doc document, b chunk) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uses++
	c.docs[doc] = &kept{chunk: b, used: c.uses}
	c.size += len(b.deflated)
	for c.size > mostKept && len(c.docs) > 1 {
		c.drop(c.oldest())
	}
}

func (c *cache) drop(doc document) {
	if k := c.docs[doc]; k != nil {
		c.size -= len(k.chunk.deflated)
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

// prune drops documents and parts that s no longer has.
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
