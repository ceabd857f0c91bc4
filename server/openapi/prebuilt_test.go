package openapi

import (
	"slices"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
)

func builtinKinds() (*kind.Registry, []*kind.Kind) {
	kinds := kind.NewRegistry(builtin.Priorities())
	all := builtin.Kinds(builtin.Options{})
	kinds.Replace(nil, slices.Clone(all))
	return kinds, all
}

// TestPrebuiltIsServed: a document that the program has is not built. It is byte for byte what would be built.
func TestPrebuiltIsServed(t *testing.T) {
	kinds, _ := builtinKinds()
	o := New(kinds)
	s := o.describe()
	for _, path := range []string{"version", "apis", "apis/apps", "apis/apps/v1", "apis/policy/v1"} {
		for _, format := range []string{"json", "proto"} {
			g := s.groups[path]
			doc := document{path: path, hash: g.hash, format: format}
			got, err := o.document(t.Context(), g, doc)
			if err != nil || len(o.cache.docs) > 0 {
				t.Fatalf("%s: %v, %d documents were built", path, err, len(o.cache.docs))
			}
			want, err := o.buildDocument(g, doc)
			if err != nil {
				t.Fatal(err)
			}
			if read(t, got) != read(t, want) {
				t.Errorf("%s as %s differs from what is built", path, format)
			}
		}
	}
}

func read(t *testing.T, b body) string {
	t.Helper()
	text, err := b.read()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPrebuiltPart reads the part of v2, whatever inputs it is for.
func TestPrebuiltPart(t *testing.T) {
	s := &description{}
	if p, err := s.prebuiltPart(); p != nil || err != nil {
		t.Errorf("for other inputs: %v, %v", p, err)
	}
	for key := range prebuilt() {
		if key.name == v2Rest {
			s.inputs = key.inputs
		}
	}
	p, err := s.builtinPart()
	if err != nil || p == nil {
		t.Fatalf("%v, %v", p, err)
	}
	doc, err := joinJSON([]*part{p})
	if err != nil {
		t.Fatal(err)
	}
	text := read(t, doc)
	for name := range p.names {
		if !strings.Contains(text, `"`+name+`":{`) {
			t.Errorf("no definition of %s", name)
		}
	}
	binary, err := s.protoPart(p, p)
	if err != nil || binary.proto.size == 0 || &binary.proto.deflated[0] != &prebuilt()[prebuiltKey{v2Proto, s.inputs}].deflated[0] {
		t.Errorf("the protobuf is not the prebuilt one: %v", err)
	}
}

// TestAheadIsBounded: nothing is built ahead beyond the bound. The document is one that the program
// does not have.
func TestAheadIsBounded(t *testing.T) {
	kinds, all := builtinKinds()
	i := slices.IndexFunc(all, func(k *kind.Kind) bool { return k.Resource == "poddisruptionbudgets" })
	changed := *all[i]
	changed.Verbs = []string{"get", "list"}
	kinds.Replace([]*kind.Kind{all[i]}, []*kind.Kind{&changed})
	for _, full := range []bool{false, true} {
		o := New(kinds)
		s := o.describe()
		if full {
			big := document{path: "version", hash: s.groups["version"].hash, format: "json"}
			o.cache.keepDoc(big, body{{deflated: make([]byte, mostAhead)}})
		}
		if !o.buildAhead(t.Context(), nil) {
			t.Error("it did not go to the end")
		}
		policy := document{path: "apis/policy/v1", hash: s.groups["apis/policy/v1"].hash, format: "json"}
		if got := o.cache.has(policy); got == full {
			t.Errorf("full: %t, built: %t", full, got)
		}
	}
}
