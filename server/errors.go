package server

import (
	"errors"
	"fmt"
)

// ErrConfig is wrapped by errors of Open that say what to write in a Config instead.
var ErrConfig = errors.New("bad configuration")

// configError names fields as Config.FIELD, for which the command line puts its flags.
func configError(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrConfig, fmt.Errorf(format, args...))
}
