package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// member is a file or, with a name that ends in a slash, a directory in an archive or a layer.
type member struct {
	name  string
	mode  int64
	owner int
	from  string // path of its content
	text  []byte // or the content itself
}

// archiveName is the name of an archive without its end, and of the directory in it.
func (r *release) archiveName(p platform) string {
	return fmt.Sprintf("%s_%s_linux_%s", product, r.version, p.Arch)
}

// documents are the paths of the repository that archives have, besides the programs.
var documents = []string{"LICENSE", "README.md", "CHANGELOG.md", "docs"}

// writeArchives writes for each platform an archive with the programs, their documents, completion scripts and man pages.
func (r *release) writeArchives() error {
	committed, err := r.committed(documents)
	if err != nil {
		return err
	}
	manuals, err := r.manuals("completions", "man/man1")
	if err != nil {
		return err
	}
	for _, p := range platforms {
		members := slices.Concat(committed, manuals)
		for _, program := range programs {
			members = append(members, member{name: program.Name, mode: 0o755, from: r.program(program.Name, p)})
		}
		name := r.archiveName(p)
		for i, m := range members {
			members[i].name = path.Join(name, m.name)
		}
		if err := r.writeTar(filepath.Join(r.dist, name+".tar.gz"), members); err != nil {
			return err
		}
	}
	return nil
}

// committed returns files as the commit has them, whatever the work tree has.
func (r *release) committed(paths []string) (members []member, err error) {
	cmd := exec.Command("git", append([]string{"archive", "HEAD"}, paths...)...)
	cmd.Dir = r.root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git archive: %w", err)
	}
	for reader := tar.NewReader(bytes.NewReader(out)); ; {
		header, err := reader.Next()
		if err == io.EOF {
			return members, nil
		}
		if err != nil {
			return nil, err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		text, err := io.ReadAll(reader)
		if err != nil {
			return nil, err
		}
		members = append(members, member{name: header.Name, mode: header.Mode &^ 0o022, text: text})
	}
}

// manuals returns completion scripts and man pages, below these directories.
func (r *release) manuals(completions, pages string) (members []member, err error) {
	for _, program := range programs {
		for _, s := range shells {
			members = append(members, member{name: path.Join(completions, s.Shell, fmt.Sprintf(s.File, program.Name)), mode: 0o644, from: r.completion(program.Name, s.Shell, s.File)})
		}
	}
	found, err := filepath.Glob(filepath.Join(r.pages(), "*.1"))
	for _, page := range found {
		members = append(members, member{name: path.Join(pages, filepath.Base(page)), mode: 0o644, from: page})
	}
	return members, err
}

// writeTar writes a compressed archive whose bytes depend on its members alone.
func (r *release) writeTar(file string, members []member) error {
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	if err := r.tarTo(zip, members); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	return writeFile(file, b.Bytes())
}

// tarTo writes the members in the order of their names.
func (r *release) tarTo(w io.Writer, members []member) error {
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	archive := tar.NewWriter(w)
	for _, m := range members {
		text := m.text
		if m.from != "" {
			var err error
			if text, err = os.ReadFile(m.from); err != nil {
				return err
			}
		}
		header := tar.Header{Name: m.name, Mode: m.mode, Uid: m.owner, Gid: m.owner, Size: int64(len(text)), ModTime: r.date, Format: tar.FormatPAX, Typeflag: tar.TypeReg}
		if strings.HasSuffix(m.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := archive.WriteHeader(&header); err != nil {
			return err
		}
		if _, err := archive.Write(text); err != nil {
			return err
		}
	}
	return archive.Close()
}

// writeFile writes a file that others may read, and the directories above it.
func writeFile(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

// zipFile compresses a file, without a name and a time in it.
func zipFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	if _, err := zip.Write(text); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	return writeFile(to, b.Bytes())
}
