package manifest

import (
	"reflect"

	yamlv3 "sigs.k8s.io/yaml/goyaml.v3"
)

// spelling is what is done with the anchors and aliases of a document before it is changed.
type spelling int

const (
	asWritten  spelling = iota // they stay, but for aliases of what changes
	spelledOut                 // what they stand for takes their places
	anew                       // the document is written anew, as kubectl would
)

// writeAliased is write for documents with aliases. What one stands for may change in one
// place and not in another, so each result is read again: the first that says what is meant
// is as near as can be to what was written.
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

// spellOut puts copies of what aliases stand for in their places and takes away the anchors.
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

// resolve makes an alias a copy of what it stands for. Its own comments stay, that of its line
// above what is on several now.
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

// copyNode returns a node that says the same, without anchors, aliases and comments, and
// that does not tell of the manner of the document.
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
