package debugging

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestRecorded has what kube-apiserver 1.33.13 answered to the same requests.
func TestRecorded(t *testing.T) {
	var put string
	h, end := New(Options{Profiling: true, Contention: true, SetVerbosity: func(text string) (string, error) {
		if put = text; text == "x" {
			return "", errors.New(`strconv.ParseUint: parsing "x": invalid syntax`)
		}
		return "successfully set klog.logging.verbosity to " + text, nil
	}})
	defer end()
	for _, test := range []struct {
		method, path, body string
		code               int
		media, has         string
	}{
		{"GET", "/debug/pprof", "", 302, "text/html; charset=utf-8", `<a href="/debug/pprof/">Found</a>`},
		{"GET", "/debug/pprof/", "", 200, "text/html; charset=utf-8", "<title>/debug/pprof/</title>"},
		{"GET", "/debug/pprof/goroutine?debug=1", "", 200, "text/plain; charset=utf-8", "goroutine profile: total "},
		{"GET", "/debug/pprof/block?debug=1", "", 200, "text/plain; charset=utf-8", "--- contention:"},
		{"GET", "/debug/pprof/heap", "", 200, "application/octet-stream", ""},
		{"GET", "/debug/pprof/symbol", "", 200, "text/plain; charset=utf-8", "num_symbols: 1\n"},
		{"GET", "/debug/pprof/profile?seconds=1", "", 200, "application/octet-stream", ""},
		{"GET", "/debug/pprof/trace?seconds=0.01", "", 200, "application/octet-stream", "go 1."},
		{"GET", "/debug/pprof/cmdline", "", 404, "text/plain; charset=utf-8", "Unknown profile\n"},
		{"GET", "/debug/pprof/nonsense", "", 404, "text/plain; charset=utf-8", "Unknown profile\n"},
		{"GET", "/debug/pprof/profile/", "", 404, "text/plain; charset=utf-8", "Unknown profile\n"},
		{"GET", "/debug/flags", "", 200, "text/html; charset=utf-8", "<tr>v<br>"},
		{"GET", "/debug/flags/", "", 200, "text/html; charset=utf-8", "<tr>v<br>"},
		{"GET", "/debug/flags/nonsense", "", 200, "text/html; charset=utf-8", "<tr>v<br>"},
		{"GET", "/debug/flags/v", "", 406, "text/plain", "unsupported http method\n"},
		{"PUT", "/debug/flags/v", "3", 200, "text/plain", "successfully set klog.logging.verbosity to 3\n"},
		{"PUT", "/debug/flags/v", "x", 400, "text/plain", "strconv.ParseUint: parsing \"x\": invalid syntax\n"},
		{"GET", "/debug", "", 404, "text/plain; charset=utf-8", "404 page not found\n"},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(test.method, test.path, strings.NewReader(test.body)))
		media := w.Header().Get("Content-Type")
		if media == "" {
			media = http.DetectContentType(w.Body.Bytes())
		}
		if w.Code != test.code || media != test.media || !strings.Contains(w.Body.String(), test.has) {
			t.Errorf("%s %s: %d %s %q", test.method, test.path, w.Code, media, w.Body)
		}
	}
	if put != "x" {
		t.Errorf("put %q", put)
	}
}

func TestOff(t *testing.T) {
	h, end := New(Options{Contention: true})
	defer end()
	if h != nil {
		t.Error("something is served")
	}
}
