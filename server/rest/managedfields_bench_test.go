package rest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/rest"
)

// serve answers one request without a network.
func (h *harness) serve(method, path, body, contentType string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Accept", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code >= 300 {
		h.t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
}

// benchmarked are objects to write, with a %d for the field that changes.
var benchmarked = []struct{ name, path, body string }{
	{"configmap", configMaps + "/x", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x","namespace":"default","labels":{"app":"x"}},"data":{"a":"1","b":"2","c":"3","key":"%d"}}`},
	{"deployment", "/apis/apps/v1/namespaces/default/deployments/x", `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"x","namespace":"default","labels":{"app":"x"},"annotations":{"key":"%d"}},"spec":{"replicas":2,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c1","image":"i1","ports":[{"containerPort":80}],"env":[{"name":"A","value":"B"},{"name":"C","value":"D"}],"resources":{"requests":{"cpu":"100m","memory":"100Mi"}}},{"name":"c2","image":"i2"}]}}}}`},
}

// BenchmarkUpdate changes one field with and without tracking of managed fields.
func BenchmarkUpdate(b *testing.B) {
	for _, o := range benchmarked {
		for _, untracked := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/untracked=%v", o.name, untracked), func(b *testing.B) {
				h := newHarness(b, rest.Options{Untracked: untracked})
				h.serve(http.MethodPost, o.path[:len(o.path)-2], fmt.Sprintf(o.body, 0), "application/json")
				n := 0
				b.ReportAllocs()
				for b.Loop() {
					n++
					h.serve(http.MethodPut, o.path, fmt.Sprintf(o.body, n), "application/json")
				}
			})
		}
	}
}

// BenchmarkApply applies a configuration that changes nothing, and for comparison gets the object.
func BenchmarkApply(b *testing.B) {
	for _, o := range benchmarked {
		b.Run(o.name+"/apply", func(b *testing.B) {
			h := newHarness(b, rest.Options{})
			path, body := o.path+"?fieldManager=me&force=true", fmt.Sprintf(o.body, 0)
			b.ReportAllocs()
			for b.Loop() {
				h.serve(http.MethodPatch, path, body, "application/apply-patch+yaml")
			}
		})
		b.Run(o.name+"/get", func(b *testing.B) {
			h := newHarness(b, rest.Options{})
			h.serve(http.MethodPost, o.path[:len(o.path)-2], fmt.Sprintf(o.body, 0), "application/json")
			b.ReportAllocs()
			for b.Loop() {
				h.serve(http.MethodGet, o.path, "", "application/json")
			}
		})
	}
}

// eachBenchmarked measures write, which is given the number of the write, from 1.
func eachBenchmarked(b *testing.B, write func(h *harness, which, n int)) {
	for which, o := range benchmarked {
		b.Run(o.name, func(b *testing.B) {
			h := newHarness(b, rest.Options{})
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				n++
				write(h, which, n)
			}
		})
	}
}

// another is the n-th object to create, and its name.
func another(which, n int) (body, name string) {
	name = fmt.Sprint("x", n)
	return strings.Replace(fmt.Sprintf(benchmarked[which].body, n), `"name":"x"`, `"name":"`+name+`"`, 1), name
}

// BenchmarkApplyChange applies a configuration that changes one field.
func BenchmarkApplyChange(b *testing.B) {
	eachBenchmarked(b, func(h *harness, which, n int) {
		o := benchmarked[which]
		h.serve(http.MethodPatch, o.path+"?fieldManager=me&force=true", fmt.Sprintf(o.body, n), "application/apply-patch+yaml")
	})
}

// BenchmarkApplyCreate applies configurations of objects that do not exist.
func BenchmarkApplyCreate(b *testing.B) {
	eachBenchmarked(b, func(h *harness, which, n int) {
		body, name := another(which, n)
		h.serve(http.MethodPatch, strings.TrimSuffix(benchmarked[which].path, "x")+name+"?fieldManager=me&force=true", body, "application/apply-patch+yaml")
	})
}

// BenchmarkMergePatch changes one field by a merge patch.
func BenchmarkMergePatch(b *testing.B) {
	eachBenchmarked(b, func(h *harness, which, n int) {
		o, patch := benchmarked[which], []string{`{"data":{"key":"%d"}}`, `{"metadata":{"annotations":{"key":"%d"}}}`}[which]
		if n == 1 {
			h.serve(http.MethodPost, strings.TrimSuffix(o.path, "/x"), fmt.Sprintf(o.body, 0), "application/json")
		}
		h.serve(http.MethodPatch, o.path, fmt.Sprintf(patch, n), "application/merge-patch+json")
	})
}

// BenchmarkCreate creates objects.
func BenchmarkCreate(b *testing.B) {
	eachBenchmarked(b, func(h *harness, which, n int) {
		body, _ := another(which, n)
		h.serve(http.MethodPost, strings.TrimSuffix(benchmarked[which].path, "/x"), body, "application/json")
	})
}
