package kind

import "unicode/utf8"

// ValidText puts U+FFFD in place of each byte that is not UTF-8, in all texts and names of fields
// within a value, as the decoders of JSON do. It is for decoded CBOR, whose byte strings may be
// anything, because the log has JSON. It changes maps and lists in place.
func ValidText(value any) any {
	switch v := value.(type) {
	case string:
		if !utf8.ValidString(v) {
			return validText(v)
		}
	case []any:
		for i, item := range v {
			v[i] = ValidText(item)
		}
	case map[string]any:
		for name, item := range v {
			if !utf8.ValidString(name) {
				delete(v, name)
				name = validText(name)
			}
			v[name] = ValidText(item)
		}
	}
	return value
}

func validText(s string) string { return string([]rune(s)) }
