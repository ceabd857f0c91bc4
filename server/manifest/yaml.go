package manifest

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
	yamlv3 "sigs.k8s.io/yaml/goyaml.v3"
)

// yamlForm reads YAML as kubectl does, and changes its tree of nodes, which has comments
// and order.
type yamlForm struct{}

// separator begins a document, whatever is around it: at the beginning of a line it cannot
// be part of any value (YAML 1.2, 9.1).
var separator = regexp.MustCompile(`(?m)^---([ \t][^\n]*)?\r?(\n|\z)`)

// splitYAML cuts a file at its separators. One with content behind it, as in "--- {a: b}",
// is content.
func splitYAML(data []byte) (documents []document) {
	start, before := 0, 0
	for _, at := range separator.FindAllIndex(data, -1) {
		line := bytes.TrimSpace(data[at[0]+3 : at[1]])
		if len(line) > 0 && line[0] != '#' {
			at[1] = at[0] + 3
		}
		if start > 0 || !onlyComments(data[:at[0]]) {
			documents = append(documents, document{data[before:start], data[start:at[0]]})
			before = at[0]
		}
		start = at[1]
	}
	return append(documents, document{data[before:start], data[start:]})
}

// onlyComments tells whether a text belongs to the document that comes next: it has
// comments and directives at most.
func onlyComments(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' && line[0] != '%' {
			return false
		}
	}
	return true
}

func (yamlForm) read(text []byte) (map[string]any, error) {
	b, err := yaml.YAMLToJSONStrict(text)
	if err != nil && bytes.Contains(text, []byte("<<")) { // a field over a merged one counts as twice
		b, err = yaml.YAMLToJSON(text)
	}
	if err != nil {
		return nil, fmt.Errorf("read YAML: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	return readObject(b)
}

// readObject decodes JSON; nil if it is something else than an object.
func readObject(b []byte) (map[string]any, error) {
	var v any
	if err := utiljson.Unmarshal(b, &v); err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	obj, _ := v.(map[string]any)
	return obj, nil
}

func (f yamlForm) write(text []byte, was, now map[string]any) ([]byte, error) {
	if bytes.IndexByte(text, '*') >= 0 { // an alias, or a star in a text
		return f.writeAliased(text, was, now)
	}
	return rewrite(text, was, now, asWritten)
}

// rewrite changes the text of what was to say now.
func rewrite(text []byte, was, now map[string]any, s spelling) ([]byte, error) {
	var doc yamlv3.Node
	if err := yamlv3.Unmarshal(text, &doc); err != nil || len(doc.Content) != 1 {
		return nil, fmt.Errorf("read YAML: %w", err)
	}
	root := doc.Content[0]
	switch s {
	case spelledOut:
		spellOut(root)
	case anew:
		plain, err := nodeOf(was)
		if err != nil {
			return nil, err
		}
		plain.HeadComment = root.HeadComment
		doc.Content[0], root = plain, plain
	}
	if err := mergeNode(root, was, now); err != nil {
		return nil, err
	}
	untagMerges(root)
	return encodeYAML(&doc, text)
}

// encodeYAML writes a tree in the style of text.
func encodeYAML(doc *yamlv3.Node, text []byte) ([]byte, error) {
	var b bytes.Buffer
	e := yamlv3.NewEncoder(&b)
	indent, compact := manner(doc)
	e.SetIndent(indent)
	if compact {
		e.CompactSeqIndent()
	}
	if err := e.Encode(doc); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	if err := e.Close(); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	out := b.Bytes()
	if bytes.Contains(text, []byte("\r\n")) {
		out = bytes.ReplaceAll(out, []byte("\n"), []byte("\r\n"))
	}
	if !bytes.HasSuffix(text, []byte("\n")) {
		out = bytes.TrimRight(out, "\r\n")
	}
	return out, nil
}

// manner returns the indentation of a document, and whether its lists stand below their key
// without indentation.
func manner(n *yamlv3.Node) (indent int, compact bool) {
	indent, compact = 2, true
	foundIndent, foundList := false, false
	var visit func(n *yamlv3.Node)
	visit = func(n *yamlv3.Node) {
		if n.Kind == yamlv3.MappingNode && n.Style&yamlv3.FlowStyle == 0 {
			for i := 0; i+1 < len(n.Content); i += 2 {
				key, value := n.Content[i], n.Content[i+1]
				if value.Style&yamlv3.FlowStyle != 0 || key.Column == 0 || value.Column == 0 {
					continue
				}
				if value.Kind == yamlv3.MappingNode && !foundIndent && value.Column > key.Column {
					indent, foundIndent = value.Column-key.Column, true
				}
				if value.Kind == yamlv3.SequenceNode && !foundList {
					compact, foundList = value.Column == key.Column, true
				}
			}
		}
		for _, c := range n.Content {
			visit(c)
		}
	}
	visit(n)
	return min(max(indent, 2), 8), compact
}
