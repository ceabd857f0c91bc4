package changelog

// Row is one row of the log.
type Row struct {
	Revision       int64  // id
	Key            string // as Format has it; of an object /registry/<group>/<resource>/[<namespace>/]<name>
	CreateRevision int64  // revision of the row that created this incarnation of the key
	Deleted        bool   // a tombstone; Value is the last state
	At             int64  // commit time, Unix milliseconds, never less than an older row's
	Value          []byte // as Format has it; of an object JSON without resourceVersion

	// Of objects only, and only when rows are written; see Author.
	Author  int64  // 0: not known
	AuditID []byte // nil: not known

	// Of raw keys only; 0 for objects.
	Version int64 // puts since the key was created, the first is 1
	Lease   int64 // 0: none
}

// Head is the end of the log at one moment.
type Head struct {
	Revision int64 // newest revision ever drawn and committed, or the floor if that is higher
	Floor    int64 // compacted revision
}

// Step is a change together with what it replaced, for a watch that reads the log.
type Step struct {
	Row
	// Prev is the key's row before this one if the key existed then, else nil. It is
	// always known for revisions above the floor.
	Prev *Row
}
