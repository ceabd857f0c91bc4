package sqlstore

// MaxKeyBytes bounds a key in every dialect: MySQL's column has so many bytes, and
// Postgres takes at most 2704 for a row of a B-tree index, SQLite any number.
const MaxKeyBytes = 1024

// Holds says whether c may be written when the newest row of its key has revision found
// (0 if there is no row) and is a tombstone or not. Dialects call it under the write lock.
func (c *Change) Holds(found int64, deleted bool) bool {
	if deleted {
		found = 0
	}
	return c.Expect == found && !(c.Delete && c.Expect == 0)
}
