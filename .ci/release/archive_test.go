package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestArchives unpacks each archive on a bare Debian, and starts what is in it.
func TestArchives(t *testing.T) {
	r := made(t)
	for _, p := range platforms {
		t.Run(p.Arch, func(t *testing.T) {
			name := r.archiveName(p)
			file := filepath.Join(r.dist, name+".tar.gz")
			wantSmall(t, file)
			in := inside{root: bareDebian(t)}.emulated(t, p)
			said(t, "tar", "-xzf", file, "-C", filepath.Join(in.root, "opt"))
			dir := filepath.Join(in.root, "opt", name)
			for _, document := range []string{"LICENSE", "README.md", "docs/systemd/plinth.service", "man/man1/plinth-serve.1", "completions/bash/plinth"} {
				if info, err := os.Stat(filepath.Join(dir, document)); err != nil || info.Size() == 0 {
					t.Errorf("%s is missing or empty: %v", document, err)
				}
			}
			for _, program := range programs {
				wantStatic(t, filepath.Join(dir, program.Name), p)
				out := in.said(t, "/opt/"+name+"/"+program.Name, "version")
				if want := fmt.Sprintf("plinth %s (", r.version); !strings.HasPrefix(out, want) || !strings.Contains(out, "linux/"+p.Arch) {
					t.Errorf("version of %s says %s, want %s…, linux/%s", program.Name, out, want, p.Arch)
				}
			}
			in.serves(t, "srv/data", "/opt/"+name+"/plinth", "serve", "--data-dir", "/srv/data", "--listen", "127.0.0.1:0")
		})
	}
}

// TestSBOMs reads what is in each program.
func TestSBOMs(t *testing.T) {
	r := made(t)
	for _, p := range platforms {
		for _, program := range programs {
			text, err := os.ReadFile(filepath.Join(r.dist, fmt.Sprintf("%s_%s_linux_%s.cdx.json", program.Name, r.version, p.Arch)))
			must(t, err)
			var bom struct {
				BOMFormat  string
				Metadata   struct{ Component struct{ Version string } }
				Components []struct{ Purl string }
			}
			must(t, json.Unmarshal(text, &bom))
			found := false
			for _, c := range bom.Components {
				found = found || strings.HasPrefix(c.Purl, "pkg:golang/github.com/mattn/go-sqlite3@v")
			}
			if bom.BOMFormat != "CycloneDX" || bom.Metadata.Component.Version != r.version || !found {
				t.Errorf("%s for %s: %s, version %s, %d components, SQLite among them: %v", program.Name, p.Arch, bom.BOMFormat, bom.Metadata.Component.Version, len(bom.Components), found)
			}
		}
	}
}
