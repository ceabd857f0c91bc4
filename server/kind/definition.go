package kind

import (
	"errors"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Definition is the CustomResourceDefinition that Kinds were made of. They hold none of its
// schemas; whoever needs them reads them.
type Definition struct {
	// ID changes whenever what the schemas and the names are does. It is the same on every
	// replica and after a restart.
	ID string
	// Read decodes the definition, under the names that it was granted. The object is the
	// caller's. The error is ErrReplaced if there is a newer one than that of ID.
	Read func() (*apiextensionsv1.CustomResourceDefinition, error)
}

// ErrReplaced says that a definition has been changed or deleted: the registry has other
// Kinds in its place already, or is about to.
var ErrReplaced = errors.New("the CustomResourceDefinition has been replaced")
