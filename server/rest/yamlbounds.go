package rest

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/api/errors"
	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// checkAliases refuses YAML that becomes larger than a body may be by naming a value again
// and again (https://yaml.org/spec/1.2.2/#71-alias-nodes). The decoders count only how
// many values they make, not how long those are.
func checkAliases(body []byte, limit int64) error {
	if bytes.IndexByte(body, '&') < 0 || bytes.IndexByte(body, '*') < 0 {
		return nil
	}
	var document yaml.Node
	size := int64(len(body)) * int64(bytes.Count(body, []byte("*"))) // if it is no YAML to this parser
	if yaml.Unmarshal(body, &document) == nil {
		size = yamlSize(&document, map[*yaml.Node]int64{})
	}
	if size > limit {
		return errors.NewRequestEntityTooLargeError(fmt.Sprintf("The aliases in the YAML make it longer than %d bytes", limit))
	}
	return nil
}

// yamlSize is how long a value is when each alias in it stands for what it names. known
// has the sizes of what was named; what contains itself is left to the decoder to refuse.
func yamlSize(n *yaml.Node, known map[*yaml.Node]int64) int64 {
	if n.Kind == yaml.AliasNode {
		return yamlSize(n.Alias, known)
	}
	if size, ok := known[n]; ok {
		return size
	}
	known[n] = 0
	size := int64(len(n.Value)) + 1
	for _, item := range n.Content {
		size = min(size+yamlSize(item, known), 1<<40)
	}
	known[n] = size
	return size
}
