package scrub

import "github.com/plinth-io/plinth/sqlstore/changelog"

// chains looks at rows in order of their keys: whether each follows from the one before.
type chains struct {
	*finder
	floor  int64
	last   changelog.Row // of the same key, or the key before
	unsure string        // a key of which a row cannot be read

	rows, ids         int64 // number and sum of all
	objects, versions int64 // of those in force
}

func (c *chains) look(r *changelog.Row) {
	c.rows++
	c.ids += r.Revision
	switch {
	case c.rows > 1 && r.Key < c.last.Key:
		c.found(r, "it comes after the key %s", c.last.Key)
	case r.Key == c.unsure: // what came before is not known
	case c.rows == 1 || r.Key != c.last.Key:
		c.settle()
		c.first(r)
	case c.last.Deleted:
		c.afterTombstone(r)
	case r.CreateRevision != c.last.CreateRevision:
		c.found(r, "it is of an object created at revision %d, and no deletion comes between it and revision %d of one created at %d",
			r.CreateRevision, c.last.Revision, c.last.CreateRevision)
	}
	c.last = *r
	c.pace(0)
}

// first looks at the oldest row of a key. What was before it can only be missing if it was compacted.
func (c *chains) first(r *changelog.Row) {
	if r.CreateRevision < r.Revision && r.Revision > c.floor {
		c.found(r, "the revision before it is missing: its object was created at %d, and only what is below %d is compacted", r.CreateRevision, c.floor)
	}
}

func (c *chains) afterTombstone(r *changelog.Row) {
	switch {
	case r.Deleted:
		c.found(r, "it is the second deletion in a row, after revision %d", c.last.Revision)
	case r.CreateRevision != r.Revision:
		c.found(r, "its object was deleted at revision %d, and it is not a new one", c.last.Revision)
	}
}

// settle counts the last row of a key, if the key has an object.
func (c *chains) settle() {
	if c.last.Key != "" && !c.last.Deleted {
		c.objects++
		c.versions += c.last.Revision
	}
}
