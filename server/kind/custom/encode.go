package custom

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// encodeStored encodes an object in the layout that sqlstore requires: kind, apiVersion and
// metadata first, and no resourceVersion.
func encodeStored(object map[string]any) ([]byte, error) {
	b := make([]byte, 0, 4096)
	b = append(b, '{')
	var err error
	for _, name := range []string{"kind", "apiVersion"} {
		if b, err = appendMember(b, name, object[name]); err != nil {
			return nil, err
		}
	}
	b = append(b, `,"metadata":`...)
	metadata, _ := object["metadata"].(map[string]any)
	if b, err = appendObject(append(b, '{'), metadata, "resourceVersion", "selfLink"); err != nil {
		return nil, err
	}
	return appendObject(b, object, "kind", "apiVersion", "metadata")
}

// appendObject appends the fields of an object in the order of their names, except those in
// without, and closes the object that b has opened.
func appendObject(b []byte, object map[string]any, without ...string) ([]byte, error) {
	var some [32]string
	names := some[:0]
	for name := range object {
		if !slices.Contains(without, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var err error
	for _, name := range names {
		if b, err = appendMember(b, name, object[name]); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func appendMember(b []byte, name string, value any) ([]byte, error) {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b, err := appendString(b, name)
	if err != nil {
		return nil, err
	}
	return appendValue(append(b, ':'), value)
}

// appendValue appends a value of decoded JSON as encoding/json would, but for a negative zero. That
// is stored as 0, because kube-apiserver reads the -0 that it has stored as an integer.
func appendValue(b []byte, value any) (_ []byte, err error) {
	switch value := value.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, value), nil
	case int64:
		return strconv.AppendInt(b, value, 10), nil
	case float64:
		if value == 0 {
			return append(b, '0'), nil
		}
	case string:
		return appendString(b, value)
	case map[string]any:
		if value == nil {
			return append(b, "null"...), nil
		}
		return appendObject(append(b, '{'), value)
	case []any:
		if value == nil {
			return append(b, "null"...), nil
		}
		b = append(b, '[')
		for i, v := range value {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendValue(b, v); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	}
	return appendOther(b, value)
}

func appendOther(b []byte, value any) ([]byte, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", value, err)
	}
	return append(b, raw...), nil
}

func appendString(b []byte, s string) ([]byte, error) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return appendOther(b, s)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"'), nil
}
