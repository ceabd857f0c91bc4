package openapi

import (
	"context"
	"time"
)

const (
	// settled is how long definitions must be unchanged before documents are built ahead of requests: an
	// operator's definitions are created one after the other, and each would cause another build of the same
	// document.
	settled = 5 * time.Second
	// share is the part of one processor that building ahead uses, as its reciprocal.
	share = 5
	// mostAhead bounds the documents that are built ahead, in bytes.
	mostAhead = 6 << 20
)

// Run builds missing documents of v3 before they are requested, until ctx ends. It works after definitions
// have changed, and lets builds for requests go first. No request waits for Run: a document that it has not
// built is built at its first request.
func (o *OpenAPI) Run(ctx context.Context) {
	for {
		changed := o.kinds.Changed()
		if wait(ctx, changed, settled) && o.buildAhead(ctx, changed) {
			wait(ctx, changed, 0)
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// wait waits for d, or for ever if d is 0. It returns false if something has changed or ctx has ended.
func wait(ctx context.Context, changed <-chan struct{}, d time.Duration) bool {
	var over <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
		return true
	case <-changed:
	case <-ctx.Done():
	}
	return false
}

// buildAhead builds the missing documents. It returns false if something has changed or ctx has ended.
func (o *OpenAPI) buildAhead(ctx context.Context, changed <-chan struct{}) bool {
	s := o.describe()
	for _, path := range s.paths {
		g := s.groups[path]
		doc := document{path: g.path, hash: g.hash, format: "json"}
		if _, ok := g.prebuilt(doc.format); ok || o.cache.has(doc) {
			continue
		}
		if o.cache.kept() >= mostAhead {
			return true
		}
		if !o.cache.idle(ctx) {
			return false
		}
		begun := time.Now()
		b, err := o.buildDocument(g, doc)
		if err == nil { // otherwise the first request gets the error
			o.cache.keepDoc(doc, b)
		}
		if !wait(ctx, changed, (share-1)*time.Since(begun)+time.Millisecond) {
			return false
		}
	}
	return true
}
