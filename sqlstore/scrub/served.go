package scrub

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// mostUnserved is how many objects are remembered of which Options.Served has said something.
const mostUnserved = 10_000

// definitions begins the keys of CustomResourceDefinitions, which end with RESOURCE.GROUP.
var definitions = object.Prefix("apiextensions.k8s.io", "customresourcedefinitions")

// unserved are rows of objects that nothing can serve, unless a newer row supersedes them.
type unserved struct {
	problems map[string]Problem // by key
	more     bool               // than are remembered
	defined  map[string]bool    // keys of definitions that are in force
}

// judge asks whether the object of the next row of the log can be served. value is nil if the row cannot be decoded.
func (c *Rows) judge(r *changelog.Row, value []byte) {
	if c.o.Served == nil {
		return
	}
	u := &c.unserved
	if strings.HasPrefix(r.Key, definitions) {
		u.define(r.Key, !r.Deleted)
	}
	delete(u.problems, r.Key)
	if r.Deleted || value == nil {
		return
	}
	err := c.o.Served(r.Key, value)
	switch {
	case err == nil:
	case len(u.problems) >= mostUnserved:
		u.more = true
	default:
		if u.problems == nil {
			u.problems = map[string]Problem{}
		}
		u.problems[r.Key] = Problem{Revision: r.Revision, Key: r.Key, What: err.Error()}
	}
}

func (u *unserved) define(key string, there bool) {
	if u.defined == nil {
		u.defined = map[string]bool{}
	}
	if delete(u.defined, key); there {
		u.defined[key] = true
	}
}

// Settle tells of objects in force that cannot be served, after the last row. What a CustomResourceDefinition defines
// is up to that.
func (c *Rows) Settle() {
	byRevision := func(a, b Problem) int { return cmp.Compare(a.Revision, b.Revision) }
	for _, p := range slices.SortedFunc(maps.Values(c.unserved.problems), byRevision) {
		group, resource := object.SplitPrefix(object.ResourceOf(p.Key))
		if !c.unserved.defined[definitions+resource+"."+group] {
			c.tell(p)
		}
	}
	if c.unserved.more {
		c.Problem("more objects than %d cannot be served; these are not all", mostUnserved)
	}
}
