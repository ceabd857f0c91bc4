package object

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"
)

// identity is what a value says of itself.
type identity struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Metadata   *struct {
		Name            string `json:"name"`
		Namespace       string `json:"namespace"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
}

// Check looks at a stored value and says what is wrong with it: nil if it is an object as the package
// says, and the one that key names. Whoever reads a row asks this: a start and a tail for what they serve, and a
// search for damage. What the error says may be shown to everybody: nothing of the value is in it.
func Check(key string, value []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if at := badAt(value); at >= 0 {
		return fmt.Errorf("it is no JSON: byte %d of %d is wrong", at, len(value))
	}
	// JSON decoders put another character in the place of what is no UTF-8 (RFC 8259, section 8.1), and so would change
	// what an object says. Nobody can have stored it.
	if !utf8.Valid(value) {
		return errors.New("it is no JSON: it is not all UTF-8")
	}
	if says(value, strings.TrimPrefix(key, ResourceOf(key))) {
		return nil
	}
	return checkSlowly(key, value)
}

// says tells whether valid JSON is an object of that name, laid out as most are. Of others nothing is known.
func says(value []byte, name string) bool {
	rest, ok := afterText(value, `{"kind":"`)
	if ok {
		rest, ok = afterText(rest, `,"apiVersion":"`)
	}
	if !ok || !bytes.HasPrefix(rest, metadataAfter) {
		return false
	}
	metadata := rest[len(metadataAfter)-1:]
	if bytes.Contains(value, versionField) && result(metadata, "resourceVersion") != absent {
		return false
	}
	if namespace, own, namespaced := strings.Cut(name, "/"); namespaced {
		if name = own; !has(metadata, "namespace", namespace) {
			return false
		}
	} else if result(metadata, "namespace") != absent {
		return false
	}
	return has(metadata, "name", name)
}

var (
	metadataAfter = append([]byte{','}, metadataStart...)
	versionField  = []byte(`"resourceVersion":`)
)

// afterText returns what follows the string, which is not empty and has no quotes, that ends the beginning of b.
func afterText(b []byte, beginning string) (rest []byte, ok bool) {
	if !bytes.HasPrefix(b, []byte(beginning)) {
		return nil, false
	}
	n := bytes.IndexByte(b[len(beginning):], '"')
	return b[len(beginning)+n+1:], n > 0
}

func result(object []byte, member string) found {
	_, result := find(object, []string{member})
	return result
}

func has(object []byte, member, want string) bool {
	raw, result := find(object, []string{member})
	return result == there && len(raw) == len(want)+2 && raw[0] == '"' && string(raw[1:len(raw)-1]) == want
}

// checkSlowly decodes the value.
func checkSlowly(key string, value []byte) error {
	var o identity
	if err := kjson.UnmarshalCaseSensitivePreserveInts(value, &o); err != nil {
		return errors.New("its kind, apiVersion or metadata have another type")
	}
	switch {
	case o.Kind == "" || o.APIVersion == "":
		return errors.New("it has no kind or no apiVersion")
	case o.Metadata == nil:
		return errors.New("it has no metadata")
	case !bytes.HasPrefix(value, []byte(`{"kind":"`)) || !bytes.Contains(value, metadataStart):
		return errors.New("its fields are not in the order in which plinth writes them")
	case o.Metadata.ResourceVersion != "":
		return errors.New("it has a resourceVersion, which only the row may have")
	}
	name := strings.TrimPrefix(key, ResourceOf(key))
	if o.Metadata.Namespace != "" {
		var namespace string
		if namespace, name, _ = strings.Cut(name, "/"); namespace != o.Metadata.Namespace {
			return errors.New("it is in another namespace than its key says")
		}
	}
	if name != o.Metadata.Name {
		return errors.New("it has another name than its key says")
	}
	return nil
}
