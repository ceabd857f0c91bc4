package changelog

import (
	"context"
	"fmt"
	"strings"
)

// ErrMoved says that the objects of a log have moved to another one, which is to be served in its
// place: Log.Move has stopped this one. Reads of the log go on. ErrMoved wraps ErrUnavailable, so
// that a server that has the log open refuses writes as if the database were away.
var ErrMoved = fmt.Errorf("%w: this database has moved", ErrUnavailable)

// MarkMoved is the mark that Log.Move writes.
const MarkMoved = "moved"

// Moved returns the ErrMoved of a log that Move has stopped, of which noted is what Move has noted: the
// cluster id of the log that goes on, a blank, and where that is.
func Moved(noted string) error {
	_, place, _ := strings.Cut(noted, " ")
	return &movedError{place}
}

// movedError is an ErrMoved that says where to. Its text is for users, who can do something about it.
type movedError struct{ place string }

func (e *movedError) Error() string { return "this database has moved to " + e.place }
func (e *movedError) Unwrap() error { return ErrMoved }

// CheckMove refuses to move a log that has moved to another place already. Dialects call it in the
// transaction of Log.Move with what was noted before; "" means nothing.
func CheckMove(noted, to string) error {
	if to != "" && noted != "" && noted != to {
		return Moved(noted)
	}
	return nil
}

// CheckMoved returns an ErrMoved if the objects of log have moved to another one, else nil, or why
// the marks cannot be read.
func CheckMoved(ctx context.Context, log Log) error {
	marks, err := log.Marks(ctx)
	if err == nil && marks[MarkMoved] != "" {
		err = Moved(marks[MarkMoved])
	}
	return err
}
