// Package patched reads patches that stand beside a program, and lets go compile the tree as one of them changes it. The
// work tree stays as it is, and so do packages that are compiled already.
package patched

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Patch is a file NAME.patch. Before the patch itself it has lines KEY: VALUE, which say what it is for.
type Patch struct {
	Name, File string
	Says       map[string]string // by key
	Changed    []string          // files of the tree that the patch changes
	Added      []string          // files that it adds
}

// ReadAll reads the patches of a directory. Each of them must have all keys, and may have the optional ones.
func ReadAll(dir string, keys, optional []string) (all []Patch, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		p, err := Parse(string(text), keys, optional)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		p.Name, p.File = strings.TrimSuffix(filepath.Base(file), ".patch"), file
		all = append(all, p)
	}
	return all, nil
}

// file matches the two lines that name a file before and after the patch.
var file = regexp.MustCompile(`(?m)^--- (?:a/(.+)|/dev/null)\n\+\+\+ b/(.+)$`)

// Parse reads the text of a patch.
func Parse(text string, keys, optional []string) (p Patch, err error) {
	p.Says = map[string]string{}
	head, _, _ := strings.Cut(text, "\ndiff --git ")
	for line := range strings.Lines(head) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		key, value, _ := strings.Cut(line, ": ")
		if !slices.Contains(keys, key) && !slices.Contains(optional, key) {
			return p, fmt.Errorf("%q is not known", key)
		}
		p.Says[key] = value
	}
	for _, f := range file.FindAllStringSubmatch(text, -1) {
		if f[1] == "" {
			p.Added = append(p.Added, f[2])
		} else {
			p.Changed = append(p.Changed, f[1])
		}
	}
	for _, key := range keys {
		if p.Says[key] == "" {
			return p, fmt.Errorf("a patch begins with the lines %s", strings.Join(keys, ", "))
		}
	}
	if len(p.Changed)+len(p.Added) == 0 {
		return p, fmt.Errorf("it changes no file")
	}
	return p, nil
}

// Apply puts the files of the patch into dir as they are after it, and returns the file that tells go where they are
// (go help build, -overlay).
func (p *Patch) Apply(root, dir string) (overlay string, err error) {
	for _, f := range p.Changed {
		text, err := os.ReadFile(filepath.Join(root, f))
		if err != nil {
			return "", err
		}
		copied := filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(copied), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(copied, text, 0o600); err != nil {
			return "", err
		}
	}
	for _, f := range p.Added {
		if _, err := os.Stat(filepath.Join(root, f)); err == nil {
			return "", fmt.Errorf("the patch adds %s, which is there already", f)
		}
	}
	apply := exec.Command("git", "apply", p.File)
	apply.Dir = dir
	// Without this git would look for a repository above dir, and leave out what is not in it.
	apply.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := apply.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the patch does not apply: %s", out)
	}
	replace := map[string]string{}
	for _, f := range slices.Concat(p.Changed, p.Added) {
		replace[filepath.Join(root, f)] = filepath.Join(dir, f)
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// Choose returns the patches that have one of names, all if there are none. It is an error if there is no such patch.
func Choose(all []Patch, names []string) ([]Patch, error) {
	if len(names) > 0 {
		all = slices.DeleteFunc(all, func(p Patch) bool { return !slices.Contains(names, p.Name) })
	}
	if len(all) == 0 {
		return nil, errors.New("there is no such patch")
	}
	return all, nil
}

// Go runs a go command in root with an overlay, which go commands that its tests run have too, and returns all its output.
// Empty: the tree as it is.
func Go(root, overlay string, args ...string) (out string, err error) {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = root, os.Environ()
	if overlay != "" {
		cmd.Env = append(cmd.Env, "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	}
	b, err := cmd.CombinedOutput()
	return string(b), err
}
