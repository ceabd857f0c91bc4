package past

import (
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// YAML is yaml.Marshal for values of any characters. YAML's reader refuses some characters that are allowed in JSON,
// which objects are kept as: they are written by their numbers.
func YAML(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if i := strings.IndexFunc(string(text), refused); i >= 0 { // it is within a string, as nothing else has such characters
		var b strings.Builder
		for _, r := range string(text) {
			if refused(r) {
				fmt.Fprintf(&b, `\u%04x`, r)
			} else {
				b.WriteRune(r)
			}
		}
		text = []byte(b.String())
	}
	return yaml.JSONToYAML(text)
}

// refused tells whether YAML allows a character only by its number, or takes it for the end of a line.
func refused(r rune) bool {
	return r >= 0x7f && r <= 0x9f || r == 0xfffe || r == 0xffff
}
