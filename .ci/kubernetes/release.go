package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

const kubernetes = "k8s.io/kubernetes"

// release is a release of Kubernetes 1: its minor version and its patch version.
type release struct{ minor, fix string }

var releaseName = regexp.MustCompile(`^v1\.(\d+)\.(\d+)$`)

func parseRelease(name string) (release, error) {
	m := releaseName.FindStringSubmatch(name)
	if m == nil {
		return release{}, fmt.Errorf("%q is no release of Kubernetes; write one such as v1.38.0", name)
	}
	return release{m[1], m[2]}, nil
}

// releaseOf is the release that a go.mod requires.
func releaseOf(goMod string) (release, error) {
	m := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(kubernetes) + ` (v\S+)`).FindStringSubmatch(goMod)
	if m == nil {
		return release{}, fmt.Errorf("go.mod does not require %s", kubernetes)
	}
	return parseRelease(m[1])
}

// version is that of k8s.io/kubernetes, library that of all its other modules.
func (r release) version() string   { return "v" + r.patch() }
func (r release) library() string   { return "v0." + r.minor + "." + r.fix }
func (r release) patch() string     { return "1." + r.minor + "." + r.fix }
func (r release) minorName() string { return "1." + r.minor }

// minorPattern is an extended regular expression for the minor version, with or without a patch version.
func (r release) minorPattern() string { return `(^|[^0-9.])1\.` + r.minor + `($|[^0-9])` }

// lines matches the lines of a go.mod that have a module of Kubernetes at this release.
func (r release) lines() *regexp.Regexp {
	return regexp.MustCompile(`(?m)(\bk8s\.io/\S+) (` + regexp.QuoteMeta(r.library()) + `|` + regexp.QuoteMeta(r.version()) + `)\b`)
}

func (r release) isIn(goMod string) bool { return r.lines().MatchString(goMod) }

// replaced is a go.mod with another release.
func (r release) replaced(goMod string, to release) string {
	return r.lines().ReplaceAllStringFunc(goMod, func(line string) string {
		path, version, _ := strings.Cut(line, " ")
		if version == r.version() {
			return path + " " + to.version()
		}
		return path + " " + to.library()
	})
}

// renamed is a text with another release instead of this one.
func (r release) renamed(text string, to release) string {
	return regexp.MustCompile(`\b(v?)`+regexp.QuoteMeta(r.patch())+`\b`).ReplaceAllString(text, "${1}"+to.patch())
}

// apiserverModule is the go.mod of a module that has kube-apiserver and nothing else, before it is tidied.
func apiserverModule(r release) string {
	return "module example.com/apiserver\n\ngo 1.26.0\n\ntool " + kubernetes + "/cmd/kube-apiserver\n\nrequire (\n\t" + kubernetes + " " + r.version() + "\n)\n"
}

// staged are the modules that a go.mod requires at v0.0.0.
func staged(goMod string) (paths []string) {
	for _, m := range regexp.MustCompile(`(?m)^\s*(k8s\.io/\S+) v0\.0\.0(?:\s|$)`).FindAllStringSubmatch(goMod, -1) {
		paths = append(paths, m[1])
	}
	return paths
}

// withRequires is a go.mod that requires modules, which nobody else names by a version that there is. Those that are
// not needed, go mod tidy takes away.
func withRequires(goMod string, paths []string, to release) string {
	var b strings.Builder
	for _, path := range paths {
		if !strings.Contains(goMod, "\t"+path+" ") {
			fmt.Fprintf(&b, "\t%s %s\n", path, to.library())
		}
	}
	if b.Len() == 0 {
		return goMod
	}
	return goMod + "\nrequire (\n" + b.String() + ")\n"
}

var requirement = regexp.MustCompile(`(?m)^\s+([^\s/]+\.[^\s/]+/\S+ v\S+)`)

// required are the modules that a go.mod requires, in lines of a path and a version.
func required(goMod string) (lines []string) {
	for _, m := range requirement.FindAllStringSubmatch(goMod, -1) {
		lines = append(lines, m[1])
	}
	return lines
}

var replacedBy = regexp.MustCompile(`(?m)^(\s+(?:replace )?(\S+) => \S+) v\S+$`)

// followed is a go.mod whose replace lines have the versions of own, lines of a path and a version.
func followed(goMod string, own []string) string {
	return replacedBy.ReplaceAllStringFunc(goMod, func(line string) string {
		m := replacedBy.FindStringSubmatch(line)
		for _, module := range own {
			if path, version, _ := strings.Cut(module, " "); path == m[2] {
				return m[1] + " " + version
			}
		}
		return line
	})
}

// served are the resources that a recording of discovery has, such as apps/v1/deployments.
func served(recording string) map[string]bool {
	found := map[string]bool{}
	for _, line := range strings.Split(recording, "\n") {
		var group struct {
			Metadata struct{ Name string }
			Versions []struct {
				Version   string
				Resources []struct{ Resource string }
			}
		}
		if json.Unmarshal([]byte(line), &group) != nil {
			continue // not an answer
		}
		for _, v := range group.Versions {
			for _, r := range v.Resources {
				found[strings.TrimPrefix(group.Metadata.Name+"/"+v.Version+"/"+r.Resource, "/")] = true
			}
		}
	}
	return found
}

// missing are the members of b that a does not have, in order.
func missing(a, b map[string]bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(b)), func(name string) bool { return a[name] })
}

// problems are what go vet says.
type problems struct {
	lines    []string
	packages map[string]bool
}

var inSource = regexp.MustCompile(`\.go:\d+:`)

// typeErrors reads the output of go vet: packages begin with "# ".
func typeErrors(out string) problems {
	p := problems{packages: map[string]bool{}}
	name := ""
	for _, line := range strings.Split(out, "\n") {
		switch {
		case strings.HasPrefix(line, "# "):
			name, _, _ = strings.Cut(strings.Trim(line[2:], "[]"), " ")
		case inSource.MatchString(line):
			p.lines = append(p.lines, line)
			p.packages[name] = true
		}
	}
	return p
}
