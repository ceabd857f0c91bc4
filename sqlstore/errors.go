package sqlstore

import (
	"errors"
	"fmt"
)

var (
	// ErrUndecodable says that a value in the log is not what Options.Check asks for: something else than this program
	// has changed or written it. It never becomes readable by itself.
	ErrUndecodable = errors.New("the stored value is damaged")

	// ErrFuture says that a revision did not come up within the time waited for it.
	ErrFuture = errors.New("revision is in the future")

	// ErrTooLarge says that one change is larger than Options.MaxValueBytes.
	ErrTooLarge = errors.New("object is too large")
)

// ConflictError says that a change's expectation did not hold. Commit's caller reads
// Current, decides anew, and may try again.
type ConflictError struct {
	Key     string
	Expect  int64  // what the change expected; 0 for absence
	Current *Entry // the key's entry now, nil if it is absent
}

func (e *ConflictError) Error() string {
	if e.Current == nil {
		return fmt.Sprintf("key %s: expected revision %d, found none", e.Key, e.Expect)
	}
	return fmt.Sprintf("key %s: expected revision %d, found %d", e.Key, e.Expect, e.Current.Revision)
}
