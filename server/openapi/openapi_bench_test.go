package openapi_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/openapi"
)

// BenchmarkFirst builds each document once; the memory that stays is reported.
func BenchmarkFirst(b *testing.B) {
	for _, path := range []string{"/openapi/v3", "/openapi/v3/api/v1", "/openapi/v3/apis/policy/v1", "/openapi/v2"} {
		b.Run(strings.TrimPrefix(path, "/openapi/"), func(b *testing.B) {
			kinds := kind.NewRegistry(nil)
			kinds.Replace(nil, builtin.Kinds(builtin.Options{}))
			req := httptest.NewRequest(http.MethodGet, path, nil)
			var keep []*openapi.OpenAPI
			before := heap()
			for b.Loop() {
				o := openapi.New(kinds)
				o.ServeHTTP(httptest.NewRecorder(), req)
				keep = append(keep, o)
			}
			b.ReportMetric(float64(heap()-before)/float64(len(keep)), "kept-B/op")
			runtime.KeepAlive(keep)
		})
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

const many = 500

// BenchmarkIndexAfterChange is the index of v3 after each of many changes of definitions.
func BenchmarkIndexAfterChange(b *testing.B) {
	benchmarkChanges(b, "/openapi/v3")
}

// BenchmarkV2AfterChange is the one document of v2 after a change among many definitions.
func BenchmarkV2AfterChange(b *testing.B) {
	b.Run("json", func(b *testing.B) { benchmarkChanges(b, "/openapi/v2") })
	b.Run("proto", func(b *testing.B) {
		benchmarkChanges(b, "/openapi/v2", "Accept", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
	})
}

func benchmarkChanges(b *testing.B, path string, header ...string) {
	d, crds := suite(b, many)
	for _, crd := range crds {
		d.put(crd)
	}
	o := openapi.New(d.kinds)
	length := fetch(b, o, path, header...)
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		crd := crds[i%many]
		crd.Generation++
		d.put(crd)
		b.StartTimer()
		length = fetch(b, o, path, header...)
	}
	b.ReportMetric(float64(length), "body-B")
}

// BenchmarkDocuments builds the document of one definition, each time another.
func BenchmarkDocuments(b *testing.B) {
	d, crds := suite(b, many)
	for _, crd := range crds {
		d.put(crd)
	}
	o := openapi.New(d.kinds)
	before := heap()
	for i := 0; b.Loop(); i++ {
		crd := crds[i%many]
		if i >= many {
			b.StopTimer()
			crd.Generation++
			d.put(crd)
			b.StartTimer()
		}
		fetch(b, o, "/openapi/v3/apis/"+crd.Spec.Group+"/v1")
	}
	b.ReportMetric(float64(heap()-before), "kept-B")
	runtime.KeepAlive([]any{d, crds, o})
}

// BenchmarkMany measures the time and resident memory of building all documents once, on a server
// with many definitions.
func BenchmarkMany(b *testing.B) {
	for _, what := range []string{"index", "v3", "v2", "v2-proto"} {
		b.Run(what, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				d, crds := suite(b, many)
				for _, crd := range crds {
					d.put(crd)
				}
				o := openapi.New(d.kinds)
				debug.FreeOSMemory()
				before, rss := heap(), resident(b)
				b.StartTimer()
				switch what {
				case "index":
					fetch(b, o, "/openapi/v3")
				case "v3":
					for _, crd := range crds {
						fetch(b, o, "/openapi/v3/apis/"+crd.Spec.Group+"/v1")
					}
				case "v2":
					b.ReportMetric(float64(fetch(b, o, "/openapi/v2")), "body-B")
				case "v2-proto":
					fetch(b, o, "/openapi/v2", "Accept", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
				}
				b.StopTimer()
				b.ReportMetric(float64(resident(b)-rss)/1e6, "resident-MB")
				b.ReportMetric(float64(heap()-before)/1e6, "kept-MB")
				runtime.KeepAlive([]any{d, crds, o})
				b.StartTimer()
			}
		})
	}
}

func fetch(b *testing.B, h http.Handler, path string, header ...string) int {
	b.Helper()
	req := httptest.NewRequest(http.MethodGet, path, nil)
	req.Header.Set("Accept-Encoding", "gzip")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, req)
	if answer.Code != http.StatusOK {
		b.Fatalf("%s: %d %.200s", path, answer.Code, answer.Body)
	}
	return answer.Body.Len()
}

// resident is the process's resident memory in bytes; 0 where the system does not tell.
func resident(b *testing.B) int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
