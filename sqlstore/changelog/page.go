package changelog

// PageBytes bounds the values that Log.Rows and Log.State return at once: large rows may come after small ones, of which
// many were asked for. The last row of a page may go beyond it.
const PageBytes = 8 << 20

// Full says that a page of rows, of which at most limit were asked for, ends because it is full: there may be more.
func Full(rows []Row, limit int) bool { return len(rows) >= limit || Heavy(rows) }

// Heavy says that the values of rows have PageBytes.
func Heavy(rows []Row) bool {
	bytes := 0
	for i := range rows {
		bytes += len(rows[i].Value)
	}
	return bytes >= PageBytes
}
