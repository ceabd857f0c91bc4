package openapi

import (
	"context"
	"runtime/debug"
	"sync"
)

// cache holds what has been built, compressed. Building takes many times the memory that
// the result does, so that only one thing is built at a time.
type cache struct {
	building chan struct{} // has room while nothing is built
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

// mostKept bounds the documents of v3, in bytes. All of Kubernetes is about 200 KB; those
// of custom resources are about 15 KB each and rarely asked for twice. Parts of v2 are not
// bounded, because each request needs them all: they are a fraction of the definitions
// that they are made of, which are in memory too.
const mostKept = 16 << 20

func newCache() cache {
	return cache{
		building: make(chan struct{}, 1),
		docs:     map[document]*kept{},
		parts:    map[partKey]*part{},
	}
}

// built returns what find finds, or builds it, unless somebody else is about to: then it
// waits, as long as ctx does. Whoever builds gets there alone, and keeps what it has made.
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

// mostGarbage is how much of documents is built before the garbage of it is collected and
// given back at once: it would stay for as long as nothing else makes as much, which may be
// for ever. One document leaves about twenty times its own size.
const mostGarbage = 2 << 20

// left is called while building, with the size of what has been built.
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

// keepDoc adds a document. If there are too many, those go that nobody has asked for in the
// longest time.
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

// prune forgets what s has no more.
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
