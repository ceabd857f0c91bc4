package openapi

import (
	"context"
	"time"
)

const (
	// settled is how long definitions must not change before documents are built ahead of requests: an
	// operator's definitions come one after the other, and each would build the same document anew.
	settled = 5 * time.Second
	// share is the part of one processor that is used to build ahead, as its reciprocal.
	share = 5
	// mostAhead bounds the documents that are built ahead, in bytes.
	mostAhead = 6 << 20
)

// Run builds the documents of v3 that are missing, ahead of their first requests, until ctx
// ends. It works after definitions have changed, and lets requests that wait for a document go first. Nothing
// waits for Run: whatever it has not built is built at the first request.
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

// wait waits for d, or without end for 0. It returns false if something changed or ctx has ended.
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

// buildAhead builds what is missing. It returns false if something changed or ctx has ended.
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
		if err == nil { // else the first request gets the error
			o.cache.keepDoc(doc, b)
		}
		if !wait(ctx, changed, (share-1)*time.Since(begun)+time.Millisecond) {
			return false
		}
	}
	return true
}
