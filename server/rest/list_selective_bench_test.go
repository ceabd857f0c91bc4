package rest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/plinth-io/plinth/server/rest"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

const pods = "/api/v1/namespaces/default/pods"

// fillPods stores n pods. One of a hundred is on the same node and has the same label app.
func (h *harness) fillPods(n int) {
	h.t.Helper()
	h.do("POST", pods, `{"metadata":{"name":"pod-number","labels":{"app":"app-share","tier":"all"}},"spec":{"nodeName":"node-share",
		"containers":[{"name":"main","image":"registry.example.com/team/image:v1","env":[{"name":"ONE","value":"1"},{"name":"TWO","value":"2"}],
		"resources":{"requests":{"cpu":"100m","memory":"64Mi"}}}]}}`).want(201)
	const prefix = "/registry/core/pods/default/"
	first := h.store.Get(prefix + "pod-number")
	var group errgroup.Group
	group.SetLimit(512)
	for i := range n {
		group.Go(func() error {
			text := strings.NewReplacer("pod-number", fmt.Sprintf("pod-%06d", i), "-share", fmt.Sprintf("-%02d", i%100))
			value := text.Replace(string(object.Unsplice(first)))
			_, err := h.store.Commit(h.t.Context(), sqlstore.Change{Key: fmt.Sprintf("%spod-%06d", prefix, i), Value: []byte(value)})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		h.t.Fatal(err)
	}
	if _, err := h.store.Commit(h.t.Context(), object.Tombstone(first)); err != nil {
		h.t.Fatal(err)
	}
}

// BenchmarkSelectiveList measures lists of one hundredth of 10,000 pods, from the request to the last
// byte of the answer. Other writes go on in "while-writing".
func BenchmarkSelectiveList(b *testing.B) {
	h := newHarness(b, rest.Options{})
	h.fillPods(10_000)
	for _, bench := range []struct{ name, query string }{
		{"label", "labelSelector=app%3Dapp-07"},
		{"labels", "labelSelector=tier%3Dall,app%3Dapp-07"},
		{"set", "labelSelector=app+in+(app-07,app-08)"},
		{"field", "fieldSelector=spec.nodeName%3Dnode-07"},
		{"name", "fieldSelector=metadata.name%3Dpod-000007"},
	} {
		for _, writing := range []bool{false, true} {
			name := bench.name + "/alone"
			if writing {
				name = bench.name + "/while-writing"
			}
			b.Run(name, func(b *testing.B) {
				r := httptest.NewRequest("GET", "/api/v1/pods?"+bench.query, nil)
				r.Header.Set("Accept", "application/json")
				warm := &counter{head: http.Header{}}
				h.ServeHTTP(warm, r)
				entry := h.store.Get("/registry/core/pods/default/pod-000001")
				b.ReportAllocs()
				for b.Loop() {
					if writing {
						b.StopTimer()
						h.touch(&entry)
						b.StartTimer()
					}
					w := &counter{head: http.Header{}}
					if h.ServeHTTP(w, r); w.code != http.StatusOK || w.bytes < warm.bytes {
						b.Fatalf("%d with %d bytes", w.code, w.bytes)
					}
				}
			})
		}
	}
}

// touch writes an entry anew.
func (h *harness) touch(e **sqlstore.Entry) {
	h.t.Helper()
	now, err := h.store.Commit(h.t.Context(), sqlstore.Change{Key: (*e).Key, Expect: (*e).Revision, Value: object.Unsplice(*e)})
	if err != nil {
		h.t.Fatal(err)
	}
	*e = now
}

// BenchmarkWriteWithIndexes measures what indexes cost writes: updates of one of 10,000 pods.
func BenchmarkWriteWithIndexes(b *testing.B) {
	for _, bench := range []struct {
		name    string
		queries []string
	}{
		{"none", nil},
		{"label", []string{"labelSelector=app%3Dapp-07"}},
		{"label-field-set", []string{"labelSelector=app%3Dapp-07", "fieldSelector=spec.nodeName%3Dnode-07", "fieldSelector=status.phase%3DRunning"}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			h := newHarness(b, rest.Options{})
			h.fillPods(10_000)
			for _, query := range bench.queries {
				h.do("GET", "/api/v1/pods?"+query, "").want(200)
			}
			if n := h.store.Stats().Indexes; n != len(bench.queries) {
				b.Fatalf("%d indexes", n)
			}
			i := 0
			for b.Loop() {
				i++
				body := fmt.Sprintf(`{"metadata":{"labels":{"app":"app-%02d"}}}`, i%100)
				w, r := httptest.NewRecorder(), httptest.NewRequest("PATCH", fmt.Sprintf("%s/pod-%06d", pods, i*7%10_000), strings.NewReader(body))
				r.Header.Set("Content-Type", "application/merge-patch+json")
				if h.ServeHTTP(w, r); w.Code != http.StatusOK {
					b.Fatalf("%d %s", w.Code, w.Body)
				}
			}
		})
	}
}
