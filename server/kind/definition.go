package kind

import (
	"errors"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Definition is the CustomResourceDefinition of a Kind. The Kind holds no schemas; callers
// that need them call Read.
type Definition struct {
	// ID changes whenever the schemas or the names change. It is the same on every replica
	// and after a restart.
	ID string
	// Read decodes the definition, with its accepted names. The object is the caller's. The
	// error is ErrReplaced if there is a newer definition than that of ID.
	Read func() (*apiextensionsv1.CustomResourceDefinition, error)
}

// ErrReplaced says that a definition was changed or deleted. The registry has replaced its
// Kinds or is about to.
var ErrReplaced = errors.New("the CustomResourceDefinition has been replaced")
