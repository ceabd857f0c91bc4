package response

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"testing"

	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
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

// TestCompresses: each of upstream's feature gates switches off the compression of its kind of answers.
func TestCompresses(t *testing.T) {
	r := &http.Request{Header: http.Header{"Accept-Encoding": {"gzip"}}}
	if !Compresses(r) || !CompressesWatch(r) || Compresses(&http.Request{}) || CompressesWatch(&http.Request{}) {
		t.Error("by default it is the client's choice")
	}
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.APIResponseCompression, false)
	if Compresses(r) || !CompressesWatch(r) {
		t.Error("without APIResponseCompression")
	}
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.WatchListCompression, false)
	if CompressesWatch(r) {
		t.Error("without WatchListCompression")
	}
}

// TestAppendGzip: a reader has all of one write before the next one comes, and short ones are not compressed.
func TestAppendGzip(t *testing.T) {
	var stream []byte
	short, long := bytes.Repeat([]byte("event "), 200), bytes.Repeat([]byte("event "), 20_000)
	for _, p := range [][]byte{short, long, short} {
		stream = AppendGzip(stream[:0], p)
		if compressed := len(stream) < len(p); compressed != (len(p) >= gzipWorthwhile) || len(stream) > len(p)+64 {
			t.Errorf("%d bytes became %d", len(p), len(stream))
		}
		body := bytes.NewReader(stream)
		gz, err := gzip.NewReader(body)
		if err != nil {
			t.Fatal(err)
		}
		gz.Multistream(false)
		if got, err := io.ReadAll(gz); err != nil || !bytes.Equal(got, p) {
			t.Errorf("%d bytes came back as %d: %v", len(p), len(got), err)
		}
	}
}

func BenchmarkAppendGzip(b *testing.B) {
	for _, size := range []int{1 << 10, 32 << 10} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			p, buffer := bytes.Repeat([]byte("0123456789abcdef"), size/16), make([]byte, 0, 2*size)
			b.ReportAllocs()
			for b.Loop() {
				AppendGzip(buffer, p)
			}
		})
	}
}
