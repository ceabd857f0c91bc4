package changelog

import "fmt"

// Witness is by what a Store knows its log again. Its row is the newest one that the Store has read
// from the log or added to it; as rows are never changed, and the newest one is never deleted, another
// row in its place, or none, tells that the database was set back.
type Witness struct {
	Head     int64 // the head was here, or beyond
	Revision int64 // of the row; 0: none
	At       int64 // commit time of the row
}

// SetBackError is an ErrSetBack that says where the log ends now.
type SetBackError struct {
	Found Head
	known Witness
}

func (e *SetBackError) Error() string {
	return fmt.Sprintf("%v: it ends at %d, and %d was there", ErrSetBack, e.Found.Revision, max(e.known.Head, e.known.Revision))
}

func (e *SetBackError) Unwrap() error { return ErrSetBack }

// Row returns the id of the row that a dialect looks for; 0, which no row has, if there is none.
func (w *Witness) Row() int64 {
	if w == nil {
		return 0
	}
	return w.Revision
}

// Check compares the log with w, which may be nil. at is the time of the row w.Revision, nil if that is
// not there. A row at or below the floor may have been compacted.
func (w *Witness) Check(now Head, at *int64) error {
	switch {
	case w == nil:
		return nil
	case now.Revision < w.Head, at != nil && *at != w.At, at == nil && now.Floor < w.Revision:
		return &SetBackError{Found: now, known: *w}
	}
	return nil
}

// CheckRows is Check for rows that follow w: ErrCompacted if w itself is compacted, since they do not
// tell then what became of the state that has w.
func (w *Witness) CheckRows(now Head, at *int64) error {
	if err := w.Check(now, at); err != nil {
		return err
	}
	if w.Row() > 0 && at == nil {
		return ErrCompacted
	}
	return nil
}
