package changelog

import "slices"

// Change is one requested row.
type Change struct {
	Key string
	// Expect is the revision of the row that this change replaces. 0 expects that the
	// key is absent: never written, or its newest row is a tombstone.
	Expect int64
	Delete bool   // append a tombstone; Expect must not be 0
	Value  []byte // what the log holds from now on, or the last state for a tombstone

	// Who makes the change; see Row.
	Author  int64
	AuditID []byte
}

// holds says whether c may be written when the newest row of its key has revision found
// (0 if there is no row) and is a tombstone or not.
func (c *Change) holds(found int64, deleted bool) bool {
	if deleted {
		found = 0
	}
	return c.Expect == found && !(c.Delete && c.Expect == 0)
}

// Result is what became of one change of a batch.
type Result struct {
	// Revision is the new row's revision, 0 if the expectation failed.
	Revision       int64
	CreateRevision int64 // of the new row
	// Found is the revision of the key's newest row when the expectation failed; 0 if
	// the key has no row. FoundDeleted says that it is a tombstone.
	Found        int64
	FoundDeleted bool
}

// Appended describes a batch that was committed (or had nothing to commit).
type Appended struct {
	Head    int64    // newest revision found under the write lock, before this batch
	Floor   int64    // compacted revision found under the write lock
	At      int64    // commit time written to the new rows, Unix milliseconds
	Results []Result // one for each change, in order
}

// Judge decides which changes of a batch hold, gives those the next revisions in order of
// the batch, and appends the rows to insert to rows, which may be nil. Dialects call it under
// the write lock, when they have read Head and At, and the newest row of each change's key
// into its Result (Found, FoundDeleted and CreateRevision, zeros if there is none). Judge
// turns these into the results that Append returns.
func (a *Appended) Judge(batch []Change, rows []Row) []Row {
	rows = slices.Grow(rows, len(batch))
	before := len(rows)
	for i := range batch {
		c, r := &batch[i], &a.Results[i]
		if !c.holds(r.Found, r.FoundDeleted) {
			r.CreateRevision = 0
			continue
		}
		next := a.Head + 1 + int64(len(rows)-before)
		if c.Expect == 0 {
			r.CreateRevision = next
		}
		r.Revision, r.Found, r.FoundDeleted = next, 0, false
		rows = append(rows, Row{Revision: next, Key: c.Key, CreateRevision: r.CreateRevision, Deleted: c.Delete, At: a.At, Value: c.Value, Author: c.Author, AuditID: c.AuditID})
	}
	return rows
}
