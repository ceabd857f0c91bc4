package main

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// form is a form of packages, and what differs between forms.
type form struct {
	name        string
	completions map[string]string // directory of the scripts of each shell
	arch        func(platform) string
}

var forms = []form{
	{
		name: "deb",
		completions: map[string]string{"bash": "/usr/share/bash-completion/completions", "zsh": "/usr/share/zsh/vendor-completions",
			"fish": "/usr/share/fish/vendor_completions.d"},
		arch: func(p platform) string { return p.Debian },
	},
	{
		name: "rpm",
		completions: map[string]string{"bash": "/usr/share/bash-completion/completions", "zsh": "/usr/share/zsh/site-functions",
			"fish": "/usr/share/fish/vendor_completions.d"},
		arch: func(p platform) string { return p.RPM },
	},
}

// writePackages writes a package of each form for each platform.
func (r *release) writePackages() error {
	for _, p := range platforms {
		for _, f := range forms {
			if err := r.writePackage(f, p); err != nil {
				return fmt.Errorf("%s for %s: %w", f.name, p.Arch, err)
			}
		}
	}
	return nil
}

func (r *release) writePackage(f form, p platform) error {
	contents, err := r.contents(f, p)
	if err != nil {
		return err
	}
	script := func(name string) string { return filepath.Join(r.root, ".ci/release/package", name) }
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: product, Arch: p.Arch, Platform: "linux", Version: r.version, Release: "1", MTime: r.date,
		Section: "admin", Priority: "optional", Maintainer: "The plinth authors <plinth-io@users.noreply.github.com>", Vendor: product, Homepage: homepage, License: licence,
		Description: programs[0].Short + "\n" + description,
		Overridables: nfpm.Overridables{
			Contents:   contents,
			Recommends: []string{"ca-certificates"},
			Scripts:    nfpm.Scripts{PostInstall: script("postinstall.sh"), PreRemove: script("preremove.sh"), PostRemove: script("postremove.sh")},
			RPM:        nfpm.RPM{BuildHost: product, Summary: programs[0].Short, Group: "Unspecified", Compression: "zstd"},
			Deb:        nfpm.Deb{Compression: "zstd"},
		},
	})
	if err := nfpm.PrepareForPackager(info, f.name); err != nil {
		return err
	}
	packager, err := nfpm.Get(f.name)
	if err != nil {
		return err
	}
	info.Target = filepath.Join(r.dist, packager.ConventionalFileName(info))
	var b bytes.Buffer
	if err := packager.Package(info, &b); err != nil {
		return err
	}
	return writeFile(info.Target, b.Bytes())
}

const description = `plinth serves the Kubernetes API, or etcd's, and keeps all state in one
append-only table of a SQL database. The package has a systemd unit, which
runs when it is enabled.`

// contents are the files of a package.
func (r *release) contents(f form, p platform) (files.Contents, error) {
	var list files.Contents
	add := func(from, to, kind string, mode os.FileMode) {
		list = append(list, &files.Content{Source: from, Destination: to, Type: kind,
			FileInfo: &files.ContentFileInfo{Mode: mode, MTime: r.date, Owner: "root", Group: "root"}})
	}
	for _, program := range programs {
		add(r.program(program.Name, p), "/usr/bin/"+program.Name, files.TypeFile, 0o755)
		for _, s := range shells {
			from := r.completion(program.Name, s.Shell, s.File)
			add(from, path.Join(f.completions[s.Shell], filepath.Base(from)), files.TypeFile, 0o644)
		}
	}
	pages, err := r.compressedPages()
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		add(page, "/usr/share/man/man1/"+filepath.Base(page), files.TypeFile, 0o644)
	}
	unit, err := r.unit()
	if err != nil {
		return nil, err
	}
	here := filepath.Join(r.root, ".ci/release/package")
	add(unit, "/usr/lib/systemd/system/plinth.service", files.TypeFile, 0o644)
	add(filepath.Join(here, "sysusers.conf"), "/usr/lib/sysusers.d/plinth.conf", files.TypeFile, 0o644)
	add(filepath.Join(here, "plinth.env"), "/etc/plinth/plinth.env", files.TypeConfigNoReplace, 0o600)
	add("", "/etc/plinth", files.TypeDir, 0o700)
	for from, to := range map[string]string{"LICENSE": "copyright", "CHANGELOG.md": "CHANGELOG.md", "README.md": "README.md"} {
		add(filepath.Join(r.root, from), "/usr/share/doc/plinth/"+to, files.TypeFile, 0o644)
	}
	return list, nil
}

// unit returns the path of the systemd unit for a program that a package has installed: below /usr, not /usr/local.
func (r *release) unit() (string, error) {
	text, err := os.ReadFile(filepath.Join(r.root, "docs/systemd/plinth.service"))
	if err != nil {
		return "", err
	}
	packaged := strings.ReplaceAll(string(text), "/usr/local/bin/", "/usr/bin/")
	packaged = strings.ReplaceAll(packaged, "../production.md", homepage+"/blob/"+r.version+"/docs/production.md")
	file := filepath.Join(r.work, "plinth.service")
	return file, writeFile(file, []byte(packaged))
}

// compressedPages returns the paths of the man pages as distributions have them.
func (r *release) compressedPages() (compressed []string, err error) {
	pages, err := filepath.Glob(filepath.Join(r.pages(), "*.1"))
	for _, page := range pages {
		if err == nil {
			err = zipFile(page, page+".gz")
		}
		compressed = append(compressed, page+".gz")
	}
	return compressed, err
}
