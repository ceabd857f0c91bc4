package custom

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// DefinitionPrefix begins the keys of all CustomResourceDefinitions.
var DefinitionPrefix = object.Prefix(apiextensionsv1.GroupName, "customresourcedefinitions")

// DefinitionName returns the name of the definition that an entry holds: PLURAL.GROUP.
func DefinitionName(e *sqlstore.Entry) string { return strings.TrimPrefix(e.Key, DefinitionPrefix) }

// decodedKey is where an entry keeps the definition that was decoded from it.
type decodedKey struct{}

// DefinitionOf decodes the definition that an entry holds, once for all who ask. The result is
// shared: nobody may change it.
func DefinitionOf(e *sqlstore.Entry) (*Definition, error) {
	if err := e.Unreadable(); err != nil {
		return nil, err
	}
	v := e.Memo(decodedKey{}, func() any {
		def, err := Decode(e.Value)
		if err != nil {
			return err
		}
		return def
	})
	if err, ok := v.(error); ok {
		return nil, err
	}
	return v.(*Definition), nil
}
