package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"

	yamlv3 "sigs.k8s.io/yaml/goyaml.v3"
)

// jsonForm keeps the order of fields, and the indentation.
type jsonForm struct{}

// splitJSON cuts a stream of JSON objects; ok is false if data is none.
func splitJSON(data []byte) (documents []document, ok bool) {
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(data))
	end := 0
	for {
		var raw json.RawMessage
		err := d.Decode(&raw)
		if err == io.EOF {
			return append(documents, document{before: data[end:]}), true
		}
		if err != nil {
			return nil, false
		}
		next := int(d.InputOffset())
		start := next - len(raw)
		documents = append(documents, document{data[end:start], data[start:next]})
		end = next
	}
}

func (jsonForm) read(text []byte) (map[string]any, error) {
	if len(text) == 0 {
		return nil, nil
	}
	return readObject(text)
}

var firstIndent = regexp.MustCompile(`^\{\r?\n([ \t]+)`)

func (jsonForm) write(text []byte, was, now map[string]any) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	root, err := readNode(d)
	if err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	if err := mergeNode(root, was, now); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := writeNode(&b, root); err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	m := firstIndent.FindSubmatch(text)
	if m == nil {
		return b.Bytes(), nil
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, b.Bytes(), "", string(m[1])); err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return indented.Bytes(), nil
}

// readNode reads one value as a tree that has the order of fields. A field that is there
// twice counts as it does for Go: the last one.
func readNode(d *json.Decoder) (*yamlv3.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	n := &yamlv3.Node{Kind: yamlv3.ScalarNode}
	switch t := token.(type) {
	case json.Delim:
		n.Kind = yamlv3.SequenceNode
		if t == '{' {
			n.Kind = yamlv3.MappingNode
		}
		for d.More() {
			c, err := readNode(d)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, c)
		}
		_, err = d.Token()
	case string:
		n.Tag, n.Value = "!!str", t
	case json.Number:
		n.Tag, n.Value = "!!float", t.String()
	case bool:
		n.Tag, n.Value = "!!bool", fmt.Sprint(t)
	default:
		n.Tag, n.Value = "!!null", "null"
	}
	return n, err
}

func writeNode(b *bytes.Buffer, n *yamlv3.Node) error {
	switch n.Kind {
	case yamlv3.MappingNode:
		return writeContent(b, n, '{', '}')
	case yamlv3.SequenceNode:
		return writeContent(b, n, '[', ']')
	}
	if n.Tag != "!!str" {
		b.WriteString(n.Value)
		return nil
	}
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(n.Value); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the encoder's newline
	return nil
}

func writeContent(b *bytes.Buffer, n *yamlv3.Node, open, end byte) error {
	b.WriteByte(open)
	for i, c := range n.Content {
		if i > 0 && end == '}' && i%2 == 1 {
			b.WriteByte(':')
		} else if i > 0 {
			b.WriteByte(',')
		}
		if err := writeNode(b, c); err != nil {
			return err
		}
	}
	b.WriteByte(end)
	return nil
}
