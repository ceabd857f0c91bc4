package openapi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
)

// The document of v2 describes everything, so it changes with every definition. It is joined from parts: one
// for the built-in Kinds, and one for each definition. Parts are cached, and only those of changed
// definitions are built again.

// partKey identifies a part. Parts with equal keys are equal.
type partKey struct {
	id     string // id of a definition, or of the built-in Kinds
	format string
}

// part is what one definition, or all built-in Kinds, contribute to the document.
type part struct {
	// For JSON: members of objects, without the braces, and the parameters that operations share, by the
	// hashes that are their names.
	head        []byte // built-in Kinds only: all members except those below
	paths       chunk
	definitions chunk
	parameters  map[string]json.RawMessage
	names       map[string]bool // built-in Kinds only: names of the definitions
	// For protobuf: a parser merges consecutive messages.
	proto chunk
}

// v2 joins the document from its parts.
func (o *OpenAPI) v2(ctx context.Context, s *description, format string) (body, error) {
	builtin, err := o.part(ctx, partKey{s.builtin, "json"}, s.builtinPart)
	if err != nil {
		return nil, err
	}
	parts := []*part{builtin}
	for _, d := range s.definitions {
		p, err := o.part(ctx, partKey{d.ID, "json"}, func() (*part, error) { return d.part(builtin) })
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	if format == "json" {
		return joinJSON(parts)
	}
	b := make(body, len(parts))
	for i, json := range parts {
		id := s.builtin
		if i > 0 {
			id = s.definitions[i-1].ID
		}
		p, err := o.part(ctx, partKey{id, format}, func() (*part, error) { return s.protoPart(builtin, json) })
		if err != nil {
			return nil, err
		}
		b[i] = p.proto
	}
	return b, nil
}

// part returns the part of that key. build makes it if it is not cached.
func (o *OpenAPI) part(ctx context.Context, key partKey, build func() (*part, error)) (*part, error) {
	find := func() (*part, bool) { return o.cache.findPart(key) }
	return built(ctx, &o.cache, find, func() (*part, error) {
		p, err := build()
		if err != nil {
			return nil, err
		}
		o.cache.keepPart(key, p)
		return p, nil
	})
}

// The JSON between the parts.
var (
	beginPaths       = deflate([]byte(`,"paths":{`))
	beginDefinitions = deflate([]byte(`},"definitions":{`))
	comma            = deflate([]byte(`,`))
)

// joinJSON joins parts within their frame. The first part has the head.
func joinJSON(parts []*part) (body, error) {
	b := body{deflate(parts[0].head), beginPaths}
	b = b.members(parts, func(p *part) chunk { return p.paths })
	b = append(b, beginDefinitions)
	b = b.members(parts, func(p *part) chunk { return p.definitions })
	parameters := map[string]json.RawMessage{}
	for _, p := range parts {
		maps.Copy(parameters, p.parameters)
	}
	shared, err := json.Marshal(parameters)
	if err != nil {
		return nil, fmt.Errorf("encode parameters: %w", err)
	}
	return append(b, deflate(fmt.Appendf(nil, `},"parameters":%s}`, shared))), nil
}

func (b body) members(parts []*part, of func(*part) chunk) body {
	first := true
	for _, p := range parts {
		c := of(p)
		if c.size == 0 {
			continue
		}
		if !first {
			b = append(b, comma)
		}
		b, first = append(b, c), false
	}
	return b
}
