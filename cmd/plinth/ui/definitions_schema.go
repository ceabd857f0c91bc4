package ui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fieldSchema is what of a JSON schema is shown.
type fieldSchema struct {
	Ref         string                  `json:"$ref"`
	AllOf       []*fieldSchema          `json:"allOf"`
	Type        string                  `json:"type"`
	Format      string                  `json:"format"`
	Title       string                  `json:"title"`
	Description string                  `json:"description"`
	Default     json.RawMessage         `json:"default"`
	Enum        []json.RawMessage       `json:"enum"`
	Required    []string                `json:"required"`
	Properties  map[string]*fieldSchema `json:"properties"`
	Items       *fieldSchema            `json:"items"`
	Additional  json.RawMessage         `json:"additionalProperties"`
	Nullable    bool                    `json:"nullable"`
	Pattern     string                  `json:"pattern"`
	Minimum     *json.Number            `json:"minimum"`
	Maximum     *json.Number            `json:"maximum"`
	MinLength   *int64                  `json:"minLength"`
	MaxLength   *int64                  `json:"maxLength"`
	MinItems    *int64                  `json:"minItems"`
	MaxItems    *int64                  `json:"maxItems"`
	IntOrString bool                    `json:"x-kubernetes-int-or-string"`
	Preserve    bool                    `json:"x-kubernetes-preserve-unknown-fields"`
	ListType    string                  `json:"x-kubernetes-list-type"`
	ListKeys    []string                `json:"x-kubernetes-list-map-keys"`
	Rules       []schemaRule            `json:"x-kubernetes-validations"`

	Kinds []metav1.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
}

// schemaRule is a rule in CEL.
type schemaRule struct {
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

// schemaSource has the schemas that others refer to.
type schemaSource struct {
	root  *fieldSchema
	named map[string]*fieldSchema
}

// convert reads a schema of another form.
func convert(from any, to *fieldSchema) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// resolve returns the schema that a reference means, with what is said where it is used.
func (f *schemaSource) resolve(s *fieldSchema) *fieldSchema {
	for range 10 { // of references to references
		ref := s.Ref
		if ref == "" && len(s.AllOf) == 1 && s.Type == "" {
			ref = s.AllOf[0].Ref
		}
		target := f.named[strings.TrimPrefix(ref, "#/components/schemas/")]
		if ref == "" || target == nil {
			return s
		}
		merged := *target
		if s.Description != "" {
			merged.Description = s.Description
		}
		if len(s.Default) > 0 {
			merged.Default = s.Default
		}
		s = &merged
	}
	return s
}

// inner returns the schema of the items of a list or of the values of a map, and the marks that tell that there is one.
func (f *schemaSource) inner(s *fieldSchema) (inner *fieldSchema, marks string) {
	for range 5 {
		var next *fieldSchema
		if s.Items != nil {
			next, marks = f.resolve(s.Items), marks+"[]"
		} else if additional := new(fieldSchema); len(s.Properties) == 0 && bytes.HasPrefix(s.Additional, []byte("{")) && json.Unmarshal(s.Additional, additional) == nil {
			next, marks = f.resolve(additional), marks+"{}"
		}
		if next == nil {
			break
		}
		s = next
	}
	return s, marks
}

// step goes to a field.
func (f *schemaSource) step(s *fieldSchema, name string) *fieldSchema {
	s, _ = f.inner(s)
	next := s.Properties[name]
	if next == nil {
		return nil
	}
	return f.resolve(next)
}

// shownDepth is how many levels of fields a page has; each deeper one has a page of its own.
const shownDepth = 3

// schemaField is a field as the page shows it.
type schemaField struct {
	Name, Path  string
	Type        string
	Required    bool
	Description string
	Facts       []string // default, enum, bounds
	Rules       []schemaRule
	Fields      []*schemaField
	Deeper      int  // fields that have a page of their own
	Open        bool // its fields are shown from the start
}

// field describes a schema, and so many levels below it.
func (f *schemaSource) field(name, path string, s *fieldSchema, required bool, depth int) *schemaField {
	out := &schemaField{Name: name, Path: path, Required: required, Description: s.Description, Facts: s.facts(), Rules: s.Rules}
	in, marks := f.inner(s)
	out.Type = strings.ReplaceAll(strings.ReplaceAll(marks, "[]", "list of "), "{}", "map of ") + in.typeName()
	if in != s {
		out.Facts = append(out.Facts, in.facts()...)
		out.Rules = append(slices.Clone(out.Rules), in.Rules...)
	}
	if depth == 0 {
		out.Deeper = len(in.Properties)
		return out
	}
	for _, child := range slices.Sorted(maps.Keys(in.Properties)) {
		to := strings.TrimPrefix(path+"/"+child, "/")
		below := f.field(child, to, f.resolve(in.Properties[child]), slices.Contains(in.Required, child), depth-1)
		below.Open = depth == shownDepth && child == "spec"
		out.Fields = append(out.Fields, below)
	}
	return out
}

func (s *fieldSchema) typeName() string {
	switch {
	case s.IntOrString, s.Format == "int-or-string":
		return "number or text"
	case s.Type == "" && len(s.Properties) > 0:
		return "object"
	case s.Type == "":
		return "any"
	case s.Format != "":
		return s.Type + " (" + s.Format + ")"
	}
	return s.Type
}

// facts are what else is allowed or comes by itself.
func (s *fieldSchema) facts() (facts []string) {
	add := func(format string, args ...any) { facts = append(facts, fmt.Sprintf(format, args...)) }
	if len(s.Default) > 0 && string(s.Default) != `""` && string(s.Default) != "{}" {
		add("default %s", s.Default)
	}
	if len(s.Enum) > 0 {
		var values []string
		for _, value := range s.Enum {
			values = append(values, strings.Trim(string(value), `"`))
		}
		add("one of %s", strings.Join(values, ", "))
	}
	for _, bound := range []struct {
		name  string
		value *json.Number
	}{{"at least", s.Minimum}, {"at most", s.Maximum}} {
		if bound.value != nil {
			add("%s %s", bound.name, *bound.value)
		}
	}
	for _, bound := range []struct {
		name, unit string
		value      *int64
	}{{"at least", "characters", s.MinLength}, {"at most", "characters", s.MaxLength}, {"at least", "items", s.MinItems}, {"at most", "items", s.MaxItems}} {
		if bound.value != nil {
			add("%s %d %s", bound.name, *bound.value, bound.unit)
		}
	}
	if s.Pattern != "" {
		add("matches %s", s.Pattern)
	}
	if s.ListType == "map" {
		add("items have the key %s", strings.Join(s.ListKeys, ", "))
	}
	if s.ListType == "set" {
		add("each item once")
	}
	if s.Nullable {
		add("or null")
	}
	if s.Preserve {
		add("further fields are kept")
	}
	return facts
}
