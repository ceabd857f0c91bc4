package scrub

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// Rows looks at rows one by one, in order of their ids.
type Rows struct {
	finder
	authors map[int64]bool
	last    changelog.Row // without value
	lastOld int64         // revision
	ids     int64         // sum of all ids
	told    int64         // rows that the view history has
	toldIDs int64         // sum of their ids

	noAuthors bool // not all of them are known
	unserved  unserved
}

// NewRows returns a Rows that has seen nothing yet.
func NewRows(o Options) *Rows {
	return &Rows{finder: finder{o: o}, authors: map[int64]bool{0: true}}
}

// Author notes that an author has a number.
func (c *Rows) Author(number int64) { c.authors[number] = true }

// Report returns what was found so far.
func (c *Rows) Report() Report { return c.report }

// Problem adds one that somebody else has found.
func (c *Rows) Problem(format string, args ...any) { c.found(nil, format, args...) }

// Look looks at the next row.
func (c *Rows) Look(ctx context.Context, r *changelog.Row) {
	c.report.Rows++
	c.report.Bytes += int64(len(r.Value))
	c.ids += r.Revision
	switch {
	case r.Revision <= c.last.Revision:
		c.found(r, "it comes after revision %d", c.last.Revision)
	case r.At < c.last.At:
		c.found(r, "it is %d ms older than revision %d", c.last.At-r.At, c.last.Revision)
	}
	if r.CreateRevision <= 0 || r.CreateRevision > r.Revision {
		c.found(r, "it says that its object was created at revision %d", r.CreateRevision)
	}
	if !c.authors[r.Author] && !c.noAuthors {
		c.found(r, "its author has number %d, which nobody has", r.Author)
	}
	c.last.Revision, c.last.At = r.Revision, max(c.last.At, r.At)
	c.judge(r, c.decode(ctx, r))
	c.looked(r)
}

// emptied says that no row is there, though somebody has written: the newest row is never deleted.
func (c *Rows) emptied() bool {
	return !c.partial && c.report.Rows == 0 && (c.report.Old > 0 || len(c.authors) > 1)
}

// LookOld looks at the next old version that is kept beside the log.
func (c *Rows) LookOld(ctx context.Context, r *changelog.OldRow) {
	c.report.Old++
	c.report.Bytes += int64(len(r.Value))
	if r.Revision <= c.lastOld {
		c.found(&r.Row, "it comes after revision %d of the old versions", c.lastOld)
	}
	if r.CreateRevision <= 0 || r.CreateRevision > r.Revision {
		c.found(&r.Row, "it says that its object was created at revision %d", r.CreateRevision)
	}
	if superseded := r.UntilID > r.Revision; superseded == r.Deleted || r.UntilID < r.Revision {
		c.found(&r.Row, "it says that it was superseded at revision %d", r.UntilID)
	}
	if head := c.report.Head.Revision; head > 0 && r.UntilID > head {
		c.found(&r.Row, "it says that it was superseded at revision %d, and the newest one is %d", r.UntilID, head)
	}
	if !c.authors[r.Author] && !c.noAuthors {
		c.found(&r.Row, "its author has number %d, which nobody has", r.Author)
	}
	c.lastOld = r.Revision
	c.decode(ctx, &r.Row)
	c.looked(&r.Row)
}

func (c *Rows) looked(r *changelog.Row) {
	if object.ResourceOf(r.Key) != "" {
		c.told++
		c.toldIDs += r.Revision
	}
	if c.o.Progress != nil {
		c.o.Progress(c.report.Rows+c.report.Old, c.report.Bytes)
	}
	c.pace(len(r.Value))
}

// encrypted is what values begin with that a Transformer has written.
var encrypted = []byte("k8s:enc:")

// decode returns the object of a row, nil if it is damaged, or encrypted and cannot be decoded.
func (c *Rows) decode(ctx context.Context, r *changelog.Row) []byte {
	value := r.Value
	if len(value) == 0 {
		c.found(r, "it has no value")
		return nil
	}
	if value[0] != '{' {
		if !bytes.HasPrefix(value, encrypted) {
			c.found(r, "its value is neither JSON nor encrypted")
			return nil
		}
		if c.o.Transformer == nil {
			c.report.Encrypted++
			return nil
		}
		plain, _, err := c.o.Transformer.FromStorage(ctx, r.Key, value)
		if err != nil {
			c.found(r, "it cannot be decrypted: %v", err)
			return nil
		}
		value = plain
	}
	if err := object.Check(r.Key, value); err != nil {
		c.found(r, "%v", err)
		return nil
	}
	if !r.Deleted && !reachable(r.Key) {
		c.found(r, "no resource reads this key: behind the resource it has another number of segments than one or two")
		return nil
	}
	return value
}

// reachable tells whether a key can be that of an object: it ends with a name, or a namespace and a name.
func reachable(key string) bool {
	segments := strings.Split(strings.TrimPrefix(key, object.ResourceOf(key)), "/")
	return len(segments) <= 2 && !slices.Contains(segments, "")
}
