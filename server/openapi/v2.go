package openapi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
)

// The one document of v2 has everything in it, so that it changes with every definition.
// It is joined of parts: one for what is built in, and one for each definition. They are
// kept, and only the part of what has changed is built again.

// partKey names a part. Those of equal keys are equal.
type partKey struct {
	id     string // of a definition, or of what is built in
	format string
}

// part is what the document has of one thing.
type part struct {
	// As JSON: members of objects, without the braces, and parameters that operations
	// share, by names that hash them.
	head        []byte // of what is built in only: all members but those that follow
	paths       chunk
	definitions chunk
	parameters  map[string]json.RawMessage
	names       map[string]bool // of the definitions; of what is built in only
	// As protobuf: a parser merges what is encoded one after the other.
	proto chunk
}

// v2 joins the document.
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
		p, err := o.part(ctx, partKey{id, format}, func() (*part, error) { return protoPart(builtin, json) })
		if err != nil {
			return nil, err
		}
		b[i] = p.proto
	}
	return b, nil
}

// part returns the part of that key; build makes it.
func (o *OpenAPI) part(ctx context.Context, key partKey, build func() (*part, error)) (*part, error) {
	find := func() (*part, bool) { return o.cache.findPart(key) }
	return built(ctx, &o.cache, find, func() (*part, error) {
		p, err := build()
		if err != nil {
			return nil, err
		}
		o.cache.keepPart(key, p)
		o.cache.left(p.paths.size + p.definitions.size + p.proto.size)
		return p, nil
	})
}

// The JSON between the parts.
var (
	beginPaths       = deflate([]byte(`,"paths":{`))
	beginDefinitions = deflate([]byte(`},"definitions":{`))
	comma            = deflate([]byte(`,`))
)

// joinJSON writes the frame around parts, the first of which has a head.
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
