package ui

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed static
var staticFiles embed.FS

// asset is a file that browsers keep: its name has a hash of what is in it.
type asset struct {
	name string // with the hash
	text []byte
}

// assets are by the names of the files, without folders; byHash by those with hashes.
var assets, assetsByHash = readAssets()

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
		a := &asset{strings.TrimSuffix(base, ext) + "." + hex.EncodeToString(sum[:5]) + ext, text}
		byName[base], byHash[a.name] = a, a
		return err
	})
	return byName, byHash
}

// serveAsset answers for a file.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	a := assetsByHash[r.PathValue("name")]
	if a == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	http.ServeContent(w, r, a.name, time.Time{}, bytes.NewReader(a.text))
}
