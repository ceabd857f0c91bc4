package object

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

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

// Check decodes a stored value and says what is wrong with it: nil if it is an object as the package
// says, and the one that key names.
func Check(key string, value []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	var o identity
	if err := kjson.UnmarshalCaseSensitivePreserveInts(value, &o); err != nil {
		return fmt.Errorf("its JSON cannot be read: %w", err)
	}
	switch {
	case o.Kind == "" || o.APIVersion == "":
		return errors.New("it has no kind or no apiVersion")
	case o.Metadata == nil:
		return errors.New("it has no metadata")
	case !bytes.HasPrefix(value, []byte(`{"kind":"`)) || !bytes.Contains(value, metadataStart):
		return errors.New("its fields are not in the order in which plinth writes them")
	case o.Metadata.ResourceVersion != "":
		return fmt.Errorf("it has the resourceVersion %q, which only the row may have", o.Metadata.ResourceVersion)
	}
	name := strings.TrimPrefix(key, ResourceOf(key))
	if o.Metadata.Namespace != "" {
		var namespace string
		if namespace, name, _ = strings.Cut(name, "/"); namespace != o.Metadata.Namespace {
			return fmt.Errorf("it is in the namespace %q, which its key does not say", o.Metadata.Namespace)
		}
	}
	if name != o.Metadata.Name {
		return fmt.Errorf("its name is %q, which its key does not say", o.Metadata.Name)
	}
	return nil
}
