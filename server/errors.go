package server

import (
	"errors"
	"fmt"

	"github.com/plinth-io/plinth/server/fielderr"
)

// ErrConfig is wrapped by errors of Open that say what to write in a Config instead.
var ErrConfig = errors.New("bad configuration")

// FieldError is an error about fields of a Config, which it calls Config.NAME. fielderr.Text writes it in other
// names, such as those of flags.
type FieldError = fielderr.Error

// field is the name of a field of Config in an error.
type field = fielderr.Name

// fieldError returns a FieldError that wraps ErrConfig. Arguments of type field are the fields.
func fieldError(format string, args ...any) error {
	return configError("%w", fielderr.Errorf(format, args...))
}

// configError returns an error that wraps ErrConfig.
func configError(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrConfig, fmt.Errorf(format, args...))
}
