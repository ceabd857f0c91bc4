package manifest

import (
	"maps"
	"reflect"
	"slices"
	"strconv"

	"sigs.k8s.io/yaml"
	yamlv3 "sigs.k8s.io/yaml/goyaml.v3"
)

// mergeNode changes a node with the content was into one with the content now. Parts that are
// the same in both stay as they are written.
func mergeNode(n *yamlv3.Node, was, now any) error {
	if reflect.DeepEqual(was, now) {
		return nil
	}
	if n.Kind == yamlv3.AliasNode {
		resolve(n)
	}
	switch next := now.(type) {
	case map[string]any:
		if before, ok := was.(map[string]any); ok && n.Kind == yamlv3.MappingNode {
			return mergeFields(n, before, next)
		}
	case []any:
		if before, ok := was.([]any); ok && n.Kind == yamlv3.SequenceNode && len(before) == len(next) && len(n.Content) == len(next) {
			for i := range next {
				if err := mergeNode(n.Content[i], before[i], next[i]); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return replaceNode(n, now)
}

// mergeFields keeps the order of fields; new ones come last.
func mergeFields(n *yamlv3.Node, was, now map[string]any) error {
	flatten(n)
	var content []*yamlv3.Node
	there := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		next, ok := now[key.Value]
		if !ok {
			continue
		}
		there[key.Value] = true
		if err := mergeNode(value, was[key.Value], next); err != nil {
			return err
		}
		content = append(content, key, value)
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if there[name] {
			continue
		}
		value, err := nodeOf(now[name])
		if err != nil {
			return err
		}
		key := &yamlv3.Node{}
		key.SetString(name)
		content = append(content, key, value)
	}
	n.Content = content
	return nil
}

// replaceNode keeps the comments and the anchor only.
func replaceNode(n *yamlv3.Node, now any) error {
	next, err := nodeOf(now)
	if err != nil {
		return err
	}
	next.Anchor = n.Anchor
	next.HeadComment, next.LineComment, next.FootComment = n.HeadComment, n.LineComment, n.FootComment
	if next.Kind == yamlv3.ScalarNode && n.Kind == yamlv3.ScalarNode && next.Tag == "!!str" && n.Tag == "!!str" {
		next.Style = n.Style
	}
	*n = *next
	return nil
}

// nodeOf returns a value as kubectl would write it.
func nodeOf(v any) (*yamlv3.Node, error) {
	if n, ok := v.(int64); ok { // most of what defaults are made of
		return &yamlv3.Node{Kind: yamlv3.ScalarNode, Tag: "!!int", Value: strconv.FormatInt(n, 10)}, nil
	}
	text, err := yaml.Marshal(v)
	if err != nil {
		return nil, err
	}
	var doc yamlv3.Node
	if err := yamlv3.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	n := doc.Content[0]
	forgetColumns(n)
	return n, nil
}

// forgetColumns removes the columns of a new node, so that no style is derived from them.
func forgetColumns(n *yamlv3.Node) {
	n.Line, n.Column = 0, 0
	for _, c := range n.Content {
		forgetColumns(c)
	}
}
