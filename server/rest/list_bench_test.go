package rest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/plinth-io/plinth/server/rest"
)

// counter is a ResponseWriter that keeps nothing but the number of bytes.
type counter struct {
	head  http.Header
	code  int
	bytes int64
}

func (c *counter) Header() http.Header { return c.head }

func (c *counter) WriteHeader(code int) { c.code = code }

func (c *counter) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	return len(p), nil
}

// fill creates n ConfigMaps as clients do.
func (h *harness) fill(n int) {
	h.t.Helper()
	var wait sync.WaitGroup
	next := make(chan int)
	for range 16 {
		wait.Go(func() {
			for i := range next {
				body := configMap(fmt.Sprintf("config-%05d", i), strings.Repeat("value ", 20))
				w := httptest.NewRecorder()
				r := httptest.NewRequest("POST", configMaps, strings.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				if h.ServeHTTP(w, r); w.Code != http.StatusCreated {
					h.t.Errorf("create: %d %s", w.Code, w.Body)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wait.Wait()
}

// BenchmarkList measures one list of 10,000 ConfigMaps that are encoded already, from the request
// to the last byte of the answer.
func BenchmarkList(b *testing.B) {
	h := newHarness(b, rest.Options{CBOR: true})
	h.fill(10_000)
	for _, bench := range []struct{ name, accept string }{
		{"json", "application/json"},
		{"protobuf", "application/vnd.kubernetes.protobuf"},
		{"cbor", "application/cbor"},
		{"metadata-json", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"},
		{"metadata-protobuf", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			r := httptest.NewRequest("GET", configMaps+"?resourceVersion=0", nil)
			r.Header.Set("Accept", bench.accept)
			warm := &counter{head: http.Header{}}
			h.ServeHTTP(warm, r)
			b.SetBytes(warm.bytes)
			b.ReportAllocs()
			for b.Loop() {
				w := &counter{head: http.Header{}}
				if h.ServeHTTP(w, r); w.code != http.StatusOK || w.bytes != warm.bytes {
					b.Fatalf("%d with %d bytes", w.code, w.bytes)
				}
			}
		})
	}
}
