package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

//go:embed static
var staticFiles embed.FS

// asset is a file that browsers keep: its name has a hash of what is in it.
type asset struct {
	name   string // with the hash
	text   []byte
	zipped []byte // text, compressed with gzip
}

// assets are by the names of the files, without folders; the second ones by those with hashes. They are read when the first
// page is made: other commands have no use for them.
var assets = sync.OnceValues(readAssets)

func readAssets() (byName, byHash map[string]*asset) {
	byName, byHash = map[string]*asset{}, map[string]*asset{}
	_ = fs.WalkDir(staticFiles, "static", func(p string, d fs.DirEntry, err error) error {
		ext := path.Ext(p)
		if err != nil || d.IsDir() || ext == "" || ext == ".md" {
			return err
		}
		text, err := staticFiles.ReadFile(p)
		sum := sha256.Sum256(text)
		base := path.Base(p)
		a := &asset{strings.TrimSuffix(base, ext) + "." + hex.EncodeToString(sum[:5]) + ext, text, zip(text)}
		byName[base], byHash[a.name] = a, a
		return err
	})
	return byName, byHash
}

// zip compresses a file once, for all who ask for it.
func zip(text []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	_, _ = w.Write(text) // to memory, which does not fail
	_ = w.Close()
	return b.Bytes()
}

// serveAsset answers for a file.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	_, byHash := assets()
	a := byHash[r.PathValue("name")]
	if a == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Vary", "Accept-Encoding")
	text := a.text
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		text = a.zipped
	}
	http.ServeContent(w, r, a.name, time.Time{}, bytes.NewReader(text))
}
