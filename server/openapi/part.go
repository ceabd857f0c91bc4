package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/plinth-io/plinth/server/kind"
)

// builtinPart returns the part of all built-in Kinds.
func (s *description) builtinPart() (*part, error) {
	if p, err := s.prebuiltPart(); p != nil || err != nil {
		return p, err
	}
	return s.buildBuiltinPart()
}

func (s *description) buildBuiltinPart() (*part, error) {
	doc, err := s.buildBuiltinV2()
	if err != nil {
		return nil, err
	}
	p, err := newPart(doc, &part{})
	if err != nil {
		return nil, err
	}
	p.names = make(map[string]bool, len(doc.Definitions))
	for name := range doc.Definitions {
		p.names[name] = true
	}
	p.head, err = headOf(doc)
	return p, err
}

// headOf encodes the members of doc that are not joined from parts, as an unclosed object.
func headOf(doc *spec.Swagger) ([]byte, error) {
	rest := *doc
	rest.Paths, rest.Definitions, rest.Parameters = nil, nil, nil
	b, err := json.Marshal(rest)
	if err != nil {
		return nil, fmt.Errorf("encode OpenAPI v2: %w", err)
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(b, &members); err != nil {
		return nil, fmt.Errorf("encode OpenAPI v2: %w", err)
	}
	delete(members, "paths")
	return append([]byte{'{'}, encodeMembers(members)...), nil
}

// part returns the part of a definition. It is empty if the definition cannot be described, so that the other
// definitions still are.
func (d *definition) part(builtin *part) (*part, error) {
	doc, err := d.buildV2()
	if errors.Is(err, kind.ErrReplaced) {
		return nil, err
	}
	if err != nil {
		return &part{}, nil
	}
	return newPart(doc, builtin)
}

// newPart encodes doc without the types that builtin contains: metadata, options and Scale. Types of the same
// name are equal, with one exception: if a definition's group makes the name of its type that of a built-in
// type, the built-in type is used.
func newPart(doc *spec.Swagger, builtin *part) (*part, error) {
	p := &part{parameters: map[string]json.RawMessage{}}
	paths, definitions := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	err := errors.Join(
		encodeEach(paths, doc.Paths.Paths, nil),
		encodeEach(definitions, doc.Definitions, func(name string) bool { return builtin.names[name] }),
		encodeEach(p.parameters, doc.Parameters, func(name string) bool { return builtin.parameters[name] != nil }),
	)
	if err != nil {
		return nil, fmt.Errorf("encode OpenAPI v2: %w", err)
	}
	p.paths, p.definitions = deflateMembers(paths), deflateMembers(definitions)
	return p, nil
}

func encodeEach[V any](out map[string]json.RawMessage, in map[string]V, skip func(name string) bool) error {
	for name, v := range in {
		if skip != nil && skip(name) {
			continue
		}
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		out[name] = b
	}
	return nil
}

func deflateMembers(members map[string]json.RawMessage) chunk {
	b := encodeMembers(members)
	if len(b) == 0 {
		return chunk{}
	}
	return deflate(b)
}

// encodeMembers encodes an object without its braces.
func encodeMembers(members map[string]json.RawMessage) []byte {
	var b bytes.Buffer
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			b.WriteByte(',')
		}
		quoted, _ := json.Marshal(name) // a string can be encoded
		b.Write(quoted)
		b.WriteByte(':')
		b.Write(members[name])
	}
	return b.Bytes()
}

// protoPart encodes a part as protobuf. Only the part of the built-in Kinds has the head.
func (s *description) protoPart(builtin, p *part) (*part, error) {
	if c, ok := prebuilt()[prebuiltKey{v2Proto, s.inputs}]; ok && p == builtin {
		return &part{proto: c}, nil
	}
	return buildProtoPart(builtin, p)
}

func buildProtoPart(builtin, p *part) (*part, error) {
	alone := *p
	alone.head = builtin.head
	b, err := joinJSON([]*part{&alone})
	if err != nil {
		return nil, err
	}
	text, err := b.read()
	if err != nil {
		return nil, err
	}
	doc, err := openapi_v2.ParseDocument(text)
	if err != nil {
		return nil, fmt.Errorf("encode as protobuf: %w", err)
	}
	if p != builtin {
		doc = &openapi_v2.Document{Paths: doc.Paths, Definitions: doc.Definitions, Parameters: doc.Parameters}
	}
	out, err := proto.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("encode as protobuf: %w", err)
	}
	return &part{proto: deflate(out)}, nil
}
