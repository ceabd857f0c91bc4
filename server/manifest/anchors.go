package manifest

import (
	"reflect"

	yamlv3 "sigs.k8s.io/yaml/goyaml.v3"
)

// spelling says what happens to the anchors and aliases of a document before it is changed.
type spelling int

const (
	asWritten  spelling = iota // they stay, but for aliases of what changes
	spelledOut                 // their content takes their places
	anew                       // the document is written anew, as kubectl would write it
)

// writeAliased is write for documents with aliases. The content of an alias may change in one
// place and not in another, so each result is read again. The first result that says what is
// meant is the nearest to the original.
func (f yamlForm) writeAliased(text []byte, was, now map[string]any) (out []byte, err error) {
	for s := asWritten; s <= anew; s++ {
		if out, err = rewrite(text, was, now, s); err != nil {
			continue
		}
		if says, readErr := f.read(out); readErr == nil && reflect.DeepEqual(says, now) {
			break
		}
	}
	return out, err
}

// spellOut replaces aliases by copies of their content, and removes the anchors.
func spellOut(n *yamlv3.Node) {
	if n.Kind == yamlv3.AliasNode {
		resolve(n)
	}
	if n.Kind == yamlv3.MappingNode {
		flatten(n)
	}
	n.Anchor = ""
	for _, c := range n.Content {
		spellOut(c)
	}
}

// resolve replaces an alias by a copy of its content. The alias keeps its comments; the comment
// on its line goes above a copy that has several lines.
func resolve(alias *yamlv3.Node) {
	c := copyNode(alias.Alias)
	c.HeadComment, c.LineComment, c.FootComment = alias.HeadComment, alias.LineComment, alias.FootComment
	if c.Kind != yamlv3.ScalarNode && c.Style&yamlv3.FlowStyle == 0 && c.HeadComment == "" {
		c.HeadComment, c.LineComment = c.LineComment, ""
	}
	*alias = *c
}

// untagMerges lets the keys of merges be written as they were: the library knows them by a tag
// and would write that, too.
func untagMerges(n *yamlv3.Node) {
	if n.Tag == "!!merge" {
		n.Tag = ""
	}
	for _, c := range n.Content {
		untagMerges(c)
	}
}

// copyNode returns a node with the same content, without anchors, aliases, comments and
// columns, from which the style of the document is derived.
func copyNode(n *yamlv3.Node) *yamlv3.Node {
	if n.Kind == yamlv3.AliasNode {
		return copyNode(n.Alias)
	}
	c := &yamlv3.Node{Kind: n.Kind, Style: n.Style, Tag: n.Tag, Value: n.Value}
	for _, part := range n.Content {
		c.Content = append(c.Content, copyNode(part))
	}
	if c.Kind == yamlv3.MappingNode {
		flatten(c)
	}
	return c
}

// flatten puts the fields of merged mappings ("<<: *base") where they were merged, but for
// those that the mapping has itself or that an earlier one gave (https://yaml.org/type/merge.html).
func flatten(n *yamlv3.Node) {
	has, merges := map[string]bool{}, false
	for i := 0; i+1 < len(n.Content); i += 2 {
		merges = merges || isMerge(n.Content[i])
		has[n.Content[i].Value] = true
	}
	if !merges {
		return
	}
	var content []*yamlv3.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if !isMerge(key) {
			content = append(content, key, value)
			continue
		}
		for _, from := range merged(value) {
			for j := 0; j+1 < len(from.Content); j += 2 {
				if name := from.Content[j].Value; !has[name] {
					has[name] = true
					content = append(content, from.Content[j], from.Content[j+1])
				}
			}
		}
	}
	n.Content = content
}

func isMerge(key *yamlv3.Node) bool {
	return key.Kind == yamlv3.ScalarNode && key.Value == "<<" && key.Style&(yamlv3.SingleQuotedStyle|yamlv3.DoubleQuotedStyle) == 0
}

// merged returns copies of the mappings that the value of a merge names.
func merged(value *yamlv3.Node) []*yamlv3.Node {
	c := copyNode(value)
	if c.Kind == yamlv3.SequenceNode {
		return c.Content
	}
	return []*yamlv3.Node{c}
}
