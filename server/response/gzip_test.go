package response

import (
	"net/http"
	"testing"
)

// https://www.rfc-editor.org/rfc/rfc9110#name-accept-encoding
func TestAcceptsGzip(t *testing.T) {
	for _, test := range []struct {
		header []string
		want   bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{"gzip"}, true},
		{[]string{"GZIP"}, true},
		{[]string{" deflate , Gzip "}, true},
		{[]string{"deflate", "gzip"}, true},
		{[]string{"gzip;q=1.0, identity; q=0.5, *;q=0"}, true},
		{[]string{"gzip;q=0.001"}, true},
		{[]string{"gzip ; Q = 0.5"}, true},
		{[]string{"gzip;q=0"}, false},
		{[]string{"gzip;q=0.000"}, false},
		{[]string{"gzip; q=0, deflate"}, false},
		{[]string{"gzip;q=-1"}, false},
		{[]string{"gzip;q=much"}, true},
		{[]string{"gzip;level=9"}, true},
		{[]string{"x-gzip"}, false},
		{[]string{"gzipped, agzip"}, false},
		{[]string{"*"}, false},
		{[]string{"identity"}, false},
		{[]string{"br, zstd, deflate"}, false},
	} {
		if got := AcceptsGzip(&http.Request{Header: http.Header{"Accept-Encoding": test.header}}); got != test.want {
			t.Errorf("%q: %t", test.header, got)
		}
	}
}

// A list asks for each request, so that it must cost nothing.
func TestAcceptsGzipAllocatesNothing(t *testing.T) {
	r := &http.Request{Header: http.Header{"Accept-Encoding": {"deflate;q=0.5, gzip;q=0.8"}}}
	if n := testing.AllocsPerRun(100, func() { AcceptsGzip(r) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
