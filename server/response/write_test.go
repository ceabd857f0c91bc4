package response

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// TestCompression wants bodies compressed from GzipThreshold on, for clients that accept it, by
// all three ways to write one.
func TestCompression(t *testing.T) {
	ways := map[string]func(w *httptest.ResponseRecorder, accepts bool, body string){
		"WriteBody": func(w *httptest.ResponseRecorder, accepts bool, body string) {
			WriteBody(w, get(accepts), 200, MediaJSON, []byte(body))
		},
		"WriteJSON": func(w *httptest.ResponseRecorder, accepts bool, body string) {
			WriteJSON(w, get(accepts), 200, []byte(strings.TrimSuffix(body, "\n")))
		},
		"Stream": func(w *httptest.ResponseRecorder, accepts bool, body string) {
			s := NewStream(w, MediaJSON, accepts)
			for _, piece := range strings.SplitAfter(body, ",") {
				s.B = append(s.B, piece...)
				if !s.More() {
					t.Fatal("the client is gone")
				}
			}
			s.End()
		},
	}
	for name, write := range ways {
		for _, length := range []int{1, GzipThreshold, GzipThreshold + 1, 3 * GzipThreshold} {
			for _, accepts := range []bool{true, false} {
				body := strings.Repeat("x,", length/2) + strings.Repeat("y", length%2)
				body = body[:length-1] + "\n"
				w := httptest.NewRecorder()
				write(w, accepts, body)
				compressed := accepts && length > GzipThreshold
				if got := w.Header().Get("Content-Encoding") == "gzip"; got != compressed {
					t.Errorf("%s of %d bytes, accepts gzip %t: compressed %t", name, length, accepts, got)
				}
				if got := read(t, w, compressed); got != body {
					t.Errorf("%s of %d bytes, accepts gzip %t: got %d bytes", name, length, accepts, len(got))
				}
				if n := w.Header().Get("Content-Length"); name != "Stream" && !compressed && n != strconv.Itoa(length) {
					t.Errorf("%s of %d bytes: Content-Length is %s", name, length, n)
				}
			}
		}
	}
}

func read(t *testing.T, w *httptest.ResponseRecorder, compressed bool) string {
	t.Helper()
	body := io.Reader(w.Body)
	if compressed {
		gz, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		body = gz
	}
	b, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func get(gzip bool) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	if gzip {
		r.Header.Set("Accept-Encoding", "deflate, gzip")
	}
	return r
}
