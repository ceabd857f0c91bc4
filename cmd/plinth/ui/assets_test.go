package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http/httptest"
	"regexp"
	"testing"
)

// TestVendored compares the files of others with their checksums, and sees that none is without one.
func TestVendored(t *testing.T) {
	readme, err := staticFiles.ReadFile("static/vendor/README.md")
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` .*`([0-9a-f]{64})` \\|$").FindAllStringSubmatch(string(readme), -1) {
		sums[m[1]] = m[2]
	}
	files, err := staticFiles.ReadDir("static/vendor")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Name() == "README.md" {
			continue
		}
		text, err := staticFiles.ReadFile("static/vendor/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(text)
		if got := hex.EncodeToString(sum[:]); got != sums[f.Name()] {
			t.Errorf("%s: its SHA-256 is %s, the README has %q", f.Name(), got, sums[f.Name()])
		}
		delete(sums, f.Name())
	}
	for name := range sums {
		t.Errorf("the README has %s, which is not there", name)
	}
}

// TestAssets sees that what is served is a file that browsers load, under a name with its hash, and that licences and
// notes are not.
func TestAssets(t *testing.T) {
	byName, _ := assets()
	for name, a := range byName {
		r := httptest.NewRequest("GET", "/static/"+a.name, nil)
		r.SetPathValue("name", a.name)
		w := httptest.NewRecorder()
		serveAsset(w, r)
		if w.Code != 200 || w.Body.Len() != len(a.text) {
			t.Errorf("%s: %d, %d bytes of %d", name, w.Code, w.Body.Len(), len(a.text))
		}
		r.Header.Set("Accept-Encoding", "gzip, br")
		w = httptest.NewRecorder()
		serveAsset(w, r)
		unzipped, err := gzip.NewReader(w.Body)
		if err != nil || w.Header().Get("Content-Encoding") != "gzip" {
			t.Fatalf("%s: %v %v", name, w.Header(), err)
		}
		if text, err := io.ReadAll(unzipped); err != nil || !bytes.Equal(text, a.text) {
			t.Errorf("%s is another file when it is compressed: %v", name, err)
		}
	}
	for _, name := range []string{"README.md", "LICENSE", "uPlot.iife.min.js"} {
		r := httptest.NewRequest("GET", "/static/"+name, nil)
		r.SetPathValue("name", name)
		w := httptest.NewRecorder()
		if serveAsset(w, r); w.Code != 404 {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
}
