package main

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed formula.rb
var formulaText string

// writeFormula writes the formula for Homebrew, with the checksums of the archives.
func (r *release) writeFormula() error {
	type archive struct{ Block, URL, SHA256 string }
	var archives []archive
	for _, p := range platforms {
		name := r.archiveName(p) + ".tar.gz"
		sum, err := checksum(filepath.Join(r.dist, name))
		if err != nil {
			return err
		}
		archives = append(archives, archive{p.Homebrew, homepage + "/releases/download/" + r.version + "/" + name, sum})
	}
	var b bytes.Buffer
	formula, err := template.New("formula").Parse(formulaText)
	if err == nil {
		err = formula.Execute(&b, map[string]any{
			"Short": programs[0].Short, "Homepage": homepage, "License": licence, "Tag": r.version, "Commit": r.commit,
			"Version": strings.TrimPrefix(r.version, "v"), "Archives": archives, "Programs": programs,
		})
	}
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(r.dist, product+".rb"), b.Bytes())
}

// checksum returns the SHA-256 of a file.
func checksum(file string) (string, error) {
	text, err := os.ReadFile(file)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}
