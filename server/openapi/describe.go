package openapi

import (
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"runtime/debug"
	"slices"
	"sort"
	"strings"
	"sync"

	"k8s.io/kube-openapi/pkg/handler3"

	"github.com/plinth-io/plinth/server/kind"
)

// description is the input of all documents: the group versions of one Set, and the paths above them.
type description struct {
	generation  int64
	groups      map[string]*groupVersion // by path: "api/v1", "apis/apps/v1", "apis/apps"
	paths       []string                 // of groups, sorted
	definitions []*definition            // in the order of the first of their Kinds
	builtin     string                   // identifies the built-in Kinds
	inputs      string                   // hash of the inputs of the built-in Kinds; see groupVersion.inputs
	hash        string                   // of everything
	ids         map[string]bool          // ids of definitions and of the built-in Kinds
	index       func() ([]byte, error)   // the index of v3
	media       *media
}

// groupVersion is the input of one document of v3. The documents of groups, and of paths above groups, have
// no Kinds.
type groupVersion struct {
	path, group, version string
	kinds                []*kind.Kind
	media                *media
	inputs               string // hash of everything that the document depends on, except the program
	hash                 string // hash of inputs and program
}

// definition is one CustomResourceDefinition with its served versions.
type definition struct {
	*kind.Definition
	versions []string
}

// describe makes the description of set with the media types m and the routes at the paths others. It takes
// unchanged group versions from old, which may be nil.
func describe(set *kind.Set, m *media, others []string, old *description) *description {
	s := &description{generation: set.Generation, groups: map[string]*groupVersion{}, ids: map[string]bool{}, media: m}
	s.index = sync.OnceValues(s.makeIndex)
	for _, path := range []string{"api", "apis", "version"} {
		s.group(path, "", "")
	}
	for _, path := range others {
		s.group(strings.TrimPrefix(path, "/"), "", "")
	}
	definitions := map[string]*definition{}
	for _, k := range set.Kinds {
		for _, v := range k.Versions {
			s.add(k, v.Name)
		}
		if k.Custom == nil {
			continue
		}
		d := definitions[k.Custom.Definition.ID]
		if d == nil {
			d = &definition{Definition: k.Custom.Definition}
			definitions[d.ID] = d
			s.definitions = append(s.definitions, d)
		}
		d.versions = append(d.versions, k.Versions[0].Name)
	}
	s.sum(old)
	return s
}

// sum computes the hashes.
func (s *description) sum(old *description) {
	for path := range s.groups {
		s.paths = append(s.paths, path)
	}
	sort.Strings(s.paths)
	all, builtin, inputs := sha512.New(), sha512.New(), sha512.New()
	for _, path := range s.paths {
		g := s.groups[path]
		if same := old.same(g); same != nil {
			s.groups[path], g = same, same
		} else {
			g.sum()
		}
		fmt.Fprintln(all, path, g.hash)
		if !g.custom() {
			fmt.Fprintln(builtin, path, g.hash)
			fmt.Fprintln(inputs, path, g.inputs)
		}
	}
	s.builtin, s.hash, s.inputs = hashString(builtin.Sum(nil)), hashString(all.Sum(nil)), hashString(inputs.Sum(nil))
	s.ids[s.builtin] = true
	for _, d := range s.definitions {
		s.ids[d.ID] = true
	}
}

// same returns the group version of s with the same path and Kinds as g; nil if there is none.
func (s *description) same(g *groupVersion) *groupVersion {
	if s == nil || s.groups[g.path] == nil || !slices.Equal(s.groups[g.path].kinds, g.kinds) {
		return nil
	}
	return s.groups[g.path]
}

func (s *description) add(k *kind.Kind, version string) {
	path := "api/" + version
	if k.Group != "" {
		path = "apis/" + k.Group + "/" + version
		if k.Custom == nil {
			s.group("apis/"+k.Group, k.Group, "")
		}
	}
	g := s.group(path, k.Group, version)
	g.kinds = append(g.kinds, k)
}

func (s *description) group(path, group, version string) *groupVersion {
	g := s.groups[path]
	if g == nil {
		g = &groupVersion{path: path, group: group, version: version, media: s.media}
		s.groups[path] = g
	}
	return g
}

func (s *description) makeIndex() ([]byte, error) {
	index := handler3.OpenAPIV3Discovery{Paths: map[string]handler3.OpenAPIV3DiscoveryGroupVersion{}}
	for path, g := range s.groups {
		index.Paths[path] = handler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: g.url()}
	}
	b, err := json.Marshal(index)
	if err != nil {
		return nil, fmt.Errorf("encode index: %w", err)
	}
	return b, nil
}

func (g *groupVersion) url() string {
	return "/openapi/v3/" + g.path + "?hash=" + url.QueryEscape(g.hash)
}

// custom reports whether all Kinds are custom resources.
func (g *groupVersion) custom() bool {
	return len(g.kinds) > 0 && !slices.ContainsFunc(g.kinds, func(k *kind.Kind) bool { return k.Custom == nil })
}

// sum computes the hashes of everything that the document depends on: the program, which contains the schemas
// of built-in Kinds, the definitions of the other Kinds, and the fields of all Kinds.
func (g *groupVersion) sum() {
	h := sha512.New()
	fmt.Fprintln(h, g.path, g.media)
	if kind.Emulates() { // the document names the release
		fmt.Fprintln(h, kind.Emulated())
	}
	for _, k := range g.kinds {
		fmt.Fprintf(h, "%q %q %q %v %q %v\n", k.Resource, k.Kind, k.ListKind, k.Namespaced, k.Verbs, k.ReturnsDeleted(g.version))
		for _, name := range slices.Sorted(maps.Keys(k.Subresources)) {
			s := k.Subresources[name]
			fmt.Fprintf(h, "\t%q %q %v\n", name, s.Verbs, s.GVK)
		}
		if k.Custom != nil {
			fmt.Fprintf(h, "\t%q\n", k.Custom.Definition.ID)
		}
	}
	g.inputs = hashString(h.Sum(nil))
	h.Reset()
	fmt.Fprintln(h, program(), g.inputs)
	g.hash = hashString(h.Sum(nil))
}

func hashString(sum []byte) string { return fmt.Sprintf("%X", sum) }

// program identifies the build: its version or commit and all its modules.
var program = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	sum := sha512.Sum512([]byte(info.String()))
	return hex.EncodeToString(sum[:])
})
