package kind

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// UndecodableError says that a stored value cannot be decoded as an object of its Kind, because a field has a wrong
// type.
type UndecodableError struct {
	Kind string
	Err  error
}

func (e *UndecodableError) Error() string {
	return fmt.Sprintf("decode %s of the log: %v", e.Kind, e.Err)
}
func (e *UndecodableError) Unwrap() error { return e.Err }

// MostErrors is how many errors of validation an answer names, and MostErrorBytes about how long they are together.
// Validators stop looking just beyond them.
const (
	MostErrors     = 1000
	MostErrorBytes = 1 << 20
)

// LimitErrors returns errs, or as many of them as an answer names and one error with the number of all. Upstream names
// all errors and joins their texts at a cost that grows with the square of their number: a body of 3 MiB with a million
// errors would keep a processor busy for days. A single error may have a whole list in its text: three hundred owners,
// of which only one may be the controller, made 28 MB.
func LimitErrors(errs field.ErrorList) field.ErrorList {
	size := 0
	for i, err := range errs {
		if i == MostErrors || size > MostErrorBytes {
			return append(errs[:i:i], field.TooMany(field.NewPath("errors"), len(errs), i))
		}
		if len(errs) > 1 {
			size += len(err.Error())
		}
	}
	return errs
}
