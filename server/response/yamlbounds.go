package response

import (
	"bytes"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// CheckAliases refuses YAML whose aliases (https://yaml.org/spec/1.2.2/#71-alias-nodes) make it
// longer than limit. The decoders count how many values they make, not how long the values are.
func CheckAliases(body []byte, limit int64) error {
	if bytes.IndexByte(body, '&') < 0 || bytes.IndexByte(body, '*') < 0 {
		return nil
	}
	var document yaml.Node
	size := int64(len(body)) * int64(bytes.Count(body, []byte("*"))) // if this parser cannot read it
	if yaml.Unmarshal(body, &document) == nil {
		size = yamlSize(&document, map[*yaml.Node]int64{})
	}
	if size > limit {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("The aliases in the YAML make it longer than %d bytes", limit))
	}
	return nil
}

// yamlSize is the length of a value with each alias replaced by the value that it names. known
// has the sizes of values already measured. The decoder refuses a value that contains itself.
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
