package openapi

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
)

func TestCacheIsBounded(t *testing.T) {
	c := newCache()
	big := body{{deflated: make([]byte, mostKept/4)}}
	doc := func(i int) document { return document{path: fmt.Sprint(i), hash: "x", format: "json"} }
	for i := range 4 {
		c.keepDoc(doc(i), big)
	}
	c.findDoc(doc(0)) // now 1 is the one that was not used in the longest time
	c.keepDoc(doc(4), big)
	for i, want := range []bool{true, false, true, true, true} {
		if _, ok := c.findDoc(doc(i)); ok != want {
			t.Errorf("document %d is there: %t, want %t", i, ok, want)
		}
	}
	c.keepDoc(doc(5), body{{deflated: make([]byte, 2*mostKept)}})
	if _, ok := c.findDoc(doc(5)); !ok || len(c.docs) != 1 {
		t.Errorf("one that is larger than all that is to be kept: %t, with %d others", ok, len(c.docs)-1)
	}
	c.keepDoc(doc(6), big)
	c.prune(&description{groups: map[string]*groupVersion{"6": {hash: "y"}}})
	if len(c.docs) != 0 || c.size != 0 {
		t.Errorf("%d documents, %d bytes are left of hashes that are gone", len(c.docs), c.size)
	}
}

// TestBuiltOnce: a request that waits for another request's build gets its result.
func TestBuiltOnce(t *testing.T) {
	c := newCache()
	key := partKey{id: "x"}
	find := func() (*part, bool) { return c.findPart(key) }
	builds := 0 // guarded by building, as the race detector would tell
	var clients sync.WaitGroup
	for range 20 {
		clients.Go(func() {
			_, err := built(t.Context(), &c, find, func() (*part, error) {
				builds++
				p := &part{}
				c.keepPart(key, p)
				return p, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	clients.Wait()
	if builds != 1 {
		t.Errorf("%d builds", builds)
	}
}

func TestWaitingEndsWithTheRequest(t *testing.T) {
	c := newCache()
	c.building <- struct{}{} // a build that takes long
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := built(ctx, &c, func() (int, bool) { return 0, false }, func() (int, error) { return 1, nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error: %v", err)
	}
}

// TestPack: what documents share is kept once, and each document is whole, compressed or not.
func TestPack(t *testing.T) {
	c := newCache()
	common := `"io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions":{"type":"object"},"io.k8s.apimachinery.pkg.apis.meta.v1.Time":{"type":"string"}`
	docs := []string{
		`{"com.example.Toy":{},` + common + `}`, `{"com.example.Other":{},` + common + `}`, `{"com.example.Toy":{},` + common + `,"org.example.Toy":{}}`,
		`{` + string(firstShared) + `}}`, `{}`, string(lastShared) + string(firstShared), "",
	}
	bodies := map[string]body{}
	for i, text := range docs {
		b := c.pack([]byte(text))
		bodies[text] = b
		if got := read(t, b); got != text {
			t.Errorf("document %d is read as %s", i, got)
		}
		pieces, length := b.gzip()
		packed := bytes.Join(pieces, nil)
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil || len(packed) != length {
			t.Fatalf("document %d: %v", i, err)
		}
		if got, err := io.ReadAll(z); err != nil || string(got) != text {
			t.Errorf("document %d is unpacked as %s: %v", i, got, err)
		}
	}
	for i, text := range docs[1:3] {
		if &bodies[text][1].deflated[0] != &bodies[docs[0]][1].deflated[0] {
			t.Errorf("document %d has a copy", i+1)
		}
	}
	for i := range 10 * mostShared {
		c.share([]byte(fmt.Sprint(i)))
	}
	if len(c.shared) > mostShared {
		t.Errorf("%d shared texts are kept", len(c.shared))
	}
}
