package sqlstore

// Holds says whether c may be written when the newest row of its key has revision found
// (0 if there is no row) and is a tombstone or not. Dialects call it under the write lock.
func (c *Change) Holds(found int64, deleted bool) bool {
	if deleted {
		found = 0
	}
	return c.Expect == found && !(c.Delete && c.Expect == 0)
}
