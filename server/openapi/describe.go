package openapi

import (
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/plinth-io/plinth/server/kind"
)

// description is what documents are built from: the group versions of one Set.
type description struct {
	generation int64
	groups     map[string]*groupVersion // by path: "api/v1", "apis/apps/v1"
	hash       string                   // of all of them
}

type groupVersion struct {
	path, group, version string
	kinds                []*kind.Kind
	hash                 string
}

func describe(set *kind.Set) *description {
	s := &description{generation: set.Generation, groups: map[string]*groupVersion{}}
	for _, k := range set.Kinds {
		if k.Custom() {
			continue // their schemas are not published yet
		}
		for _, v := range k.Versions {
			s.add(k, v.Name)
		}
	}
	all := sha512.New()
	for _, path := range s.paths() {
		g := s.groups[path]
		g.hash = g.digest()
		fmt.Fprintln(all, path, g.hash)
	}
	s.hash = hashString(all.Sum(nil))
	return s
}

func (s *description) add(k *kind.Kind, version string) {
	path := "apis/" + k.Group + "/" + version
	if k.Group == "" {
		path = "api/" + version
	}
	g := s.groups[path]
	if g == nil {
		g = &groupVersion{path: path, group: k.Group, version: version}
		s.groups[path] = g
	}
	g.kinds = append(g.kinds, k)
}

func (s *description) paths() []string {
	paths := make([]string, 0, len(s.groups))
	for path := range s.groups {
		paths = append(paths, path)
	}
	sort.Strings(paths)
	return paths
}

// hashOf returns the present hash of a document, empty if there is no such document.
func (s *description) hashOf(path string) string {
	if group, ok := strings.CutPrefix(path, "v3/"); ok {
		if g := s.groups[group]; g != nil {
			return g.hash
		}
		return ""
	}
	return s.hash
}

// digest covers all that the document depends on: the program, which has the schemas of
// built-in kinds, and what the Kinds say of themselves.
func (g *groupVersion) digest() string {
	h := sha512.New()
	io.WriteString(h, program())
	for _, k := range g.kinds {
		fmt.Fprintf(h, "%q %q %q %v %q %v\n", k.Resource, k.Kind, k.ListKind, k.Namespaced, k.Verbs, k.ReturnDeleted)
		for _, name := range slices.Sorted(subresourceNames(k)) {
			s := k.Subresources[name]
			fmt.Fprintf(h, "\t%q %q %v\n", name, s.Verbs, s.GVK)
		}
	}
	return hashString(h.Sum(nil))
}

func subresourceNames(k *kind.Kind) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for name := range k.Subresources {
			if !yield(name) {
				return
			}
		}
	}
}

func hashString(sum []byte) string { return strings.ToUpper(hex.EncodeToString(sum)) }

// program identifies the build: its own version or commit and all modules in it.
var program = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return info.String()
})
