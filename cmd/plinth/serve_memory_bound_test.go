package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// TestMemoryBound serves more than the memory that it may use, in forms that take memory of their own, by selectors
// that want indexes, and to clients that do not read on.
func TestMemoryBound(t *testing.T) {
	const limitMiB, objects, size = 128, 350, 100 << 10
	p := serveMeasured(t, t.TempDir(), "", fmt.Sprintf("--memory=%dMiB", limitMiB), "--request-timeout=10m")
	clients := burstClients(t, p.config(t))
	before := heapKiB(t, p)
	ask := func(ctx context.Context, i int, method, path, accept string, body []byte) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, method, p.url+path, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Accept", accept)
		req.Header.Set("Content-Type", "application/json")
		resp, err := clients[i%len(clients)].Do(req)
		if err == nil && resp.StatusCode >= 300 {
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			err = fmt.Errorf("%s %s: %d %s", method, path, resp.StatusCode, text)
		}
		return resp, err
	}
	value := strings.Repeat("x", size)
	create := func(i int) error {
		labels := make([]string, 8)
		for l := range labels {
			labels[l] = fmt.Sprintf(`"label-%d":"%d"`, l, i%(l+2))
		}
		body := fmt.Sprintf(`{"metadata":{"name":"c%05d","labels":{%s}},"data":{"v":%q}}`, i, strings.Join(labels, ","), value)
		resp, err := ask(t.Context(), i, "POST", configMaps, "application/json", []byte(body))
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	var peak atomic.Int64
	stop := make(chan struct{})
	var sampling sync.WaitGroup
	sampling.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
				peak.Store(max(peak.Load(), int64(heapKiB(t, p))))
			}
		}
	})
	var g errgroup.Group
	g.SetLimit(8)
	for i := range objects {
		g.Go(func() error { return create(i) })
	}
	must(t, g.Wait())
	created := peak.Load()
	for i := range 6 { // these stand still with the first page of a list
		resp, err := ask(t.Context(), i, "GET", configMaps, "application/json", nil)
		must(t, err)
		defer resp.Body.Close()
	}
	const protobuf = "application/vnd.kubernetes.protobuf"
	queries := []struct{ query, accept string }{
		{"", "application/json"}, {"", protobuf}, {"", "application/json;as=Table;v=v1;g=meta.k8s.io"},
		{"", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}, {"", protobuf + ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"},
		{"watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", "application/json"},
	}
	for l := range 4 {
		queries = append(queries, struct{ query, accept string }{fmt.Sprintf("labelSelector=label-%d%%3D1", l), []string{"application/json", protobuf}[l%2]})
	}
	g.SetLimit(4)
	for i, q := range queries {
		g.Go(func() error {
			resp, err := ask(t.Context(), i, "GET", configMaps+"?"+q.query, q.accept, nil)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if strings.HasPrefix(q.query, "watch") { // it goes on after these
				_, err = io.CopyN(io.Discard, resp.Body, objects*size)
				return err
			}
			_, err = io.Copy(io.Discard, resp.Body)
			return err
		})
	}
	must(t, g.Wait())
	close(stop)
	sampling.Wait()
	t.Logf("%d MiB without objects; with %d MiB of them %d while they are created, %d while they are read", before>>10, objects*size>>20, created>>10, peak.Load()>>10)
	if peak.Load()>>10 > limitMiB*9/8 { // on a busy machine the collector comes late
		t.Errorf("%d MiB are in use, with a limit of %d", peak.Load()>>10, limitMiB)
	}
}
