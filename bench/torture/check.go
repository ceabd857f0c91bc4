package torture

import (
	"fmt"
	"slices"
	"time"
)

// Check judges a history. The log must explain everything: each acknowledged write is there, once, and no
// refused one is; each answer shows what the log says that there was at the revision it names; each
// watch was told its part of the log. Beside that, calls on each object must be linearizable, and no call
// may have been told less than what was answered before it began.
func Check(h *History) []Broken { return check(h, checkPatience) }

// checkPatience bounds the search for an order of the calls on one object.
const checkPatience = 2 * time.Minute

func check(h *History, patience time.Duration) []Broken {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &checker{h: h, o: newOrder(h.Log)}
	for _, call := range h.Calls {
		if call.Writes() {
			c.checkWrite(call)
		} else {
			c.checkRead(call)
		}
	}
	c.checkOwners()
	c.checkTimes()
	for _, w := range h.Watches {
		c.checkWatch(w)
	}
	c.checkDigests()
	c.checkKeys(patience)
	return c.broken
}

type checker struct {
	verdict
	h *History
	o *order
}

// blame is a fault of one call.
func blame(guarantee string, c *Call) Broken {
	return Broken{Guarantee: guarantee, Key: c.Key, Calls: []string{c.ID}}
}

// checkWrite compares a write with the rows that the log has of it.
func (c *checker) checkWrite(w *Call) {
	rows := c.o.by[w.ID]
	switch {
	case len(rows) > 1:
		c.add(blame(Once, w), "%v: the log has it %d times: %+v", w, len(rows), rows)
	case w.OK() && len(rows) == 0:
		c.add(blame(Durable, w), "%v: it was acknowledged, and the log does not have it", w)
	case w.Refused() && len(rows) > 0:
		c.add(blame(Once, w), "%v: it was refused, and the log has it: %+v", w, rows[0])
	case !w.OK() && !c.mayFail(w):
		c.add(blame(Reason, w), "%v: %s", w, w.Error)
	case w.OK() && len(w.Items) > 0 && w.Items[0] != rows[0].Item:
		c.add(blame(Answers, w), "%v: the answer has %+v, the log %+v", w, w.Items[0], rows[0].Item)
	case w.OK() && (rows[0].Key != w.Key || rows[0].Deleted != (w.Kind == Delete)):
		c.add(blame(Answers, w), "%v: the log has %+v", w, rows[0])
	case w.OK() && w.Kind != Delete && (w.Sent.V != "" && w.Sent.V != rows[0].V || w.Sent.A != "" && w.Sent.A != rows[0].A):
		c.add(blame(Answers, w), "%v: the log has %+v", w, rows[0])
	}
}

// mayFail tells whether an error is one that a call in order may get.
func (c *checker) mayFail(call *Call) bool {
	switch call.Status {
	case 0, 429, 500, 502, 503, 504:
		return true
	case 404:
		return call.Kind != Create && call.Kind != Apply && call.Kind != List && call.Kind != Pages
	case 409:
		return call.Writes()
	}
	return false
}

// checkRead compares what was read with the state at the revision that the answer names.
func (c *checker) checkRead(r *Call) {
	switch {
	case r.Status == 410:
		c.checkExpired(r, r.At, r.End, fmt.Sprint(r))
		return
	case !r.OK() && !c.mayFail(r):
		c.add(blame(Reason, r), "%v: %s", r, r.Error)
		return
	case r.Kind == Get:
		if r.OK() {
			c.checkVersion(blame(Answers, r), r.Items[0], fmt.Sprint(r))
		}
		return
	case !r.OK() && !r.Partly:
		return
	}
	switch {
	case r.Read == Exact && r.Revision != r.At:
		c.add(blame(ExactState, r), "%v: the answer is of another revision", r)
	case r.Read == NotOlder && r.Revision < r.At:
		c.add(blame(Fresh, r), "%v: the answer is older", r)
	}
	c.compare(blame(ExactState, r), r.Items, r.Key, r.Revision, r.Partly, fmt.Sprint(r))
}

// compare compares a state with that of the log.
func (c *checker) compare(b Broken, got []Item, prefix string, revision int64, partly bool, what string) {
	want := c.o.state(prefix, revision)
	if partly && len(want) >= len(got) {
		want = want[:len(got)]
	}
	got = slices.Clone(got)
	slices.SortFunc(got, byKey)
	if !slices.Equal(got, want) {
		lacks, has := difference(want, got), difference(got, want)
		for _, item := range slices.Concat(lacks, has) {
			b.Key = item.Key
		}
		c.add(b, "%s: compared with the log at revision %d it lacks %+v and has %+v", what, revision, lacks, has)
	}
}

func byKey(a, b Item) int {
	switch {
	case a.Key < b.Key:
		return -1
	case a.Key > b.Key:
		return 1
	}
	return 0
}

func difference(from, less []Item) (items []Item) {
	for _, item := range from {
		if !slices.Contains(less, item) {
			items = append(items, item)
		}
	}
	return items
}

// checkVersion wants a version that the log has.
func (c *checker) checkVersion(b Broken, item Item, what string) {
	if there, is := c.o.at(item.Key, item.Revision); !is || there != item {
		b.Key = item.Key
		c.add(b, "%s: the log has no %+v", what, item)
	}
}

// checkExpired wants revision to be older than plinth must remember: something has replaced it longer ago.
func (c *checker) checkExpired(call *Call, revision int64, at time.Duration, what string) {
	b := Broken{Guarantee: Resumable}
	if call != nil {
		b = blame(Resumable, call)
	}
	newest := c.h.Begun.Add(at - c.h.Keeps + clockSlack).UnixMilli()
	for _, r := range c.h.Log {
		if r.Revision > revision && r.At <= newest {
			return
		}
	}
	for _, m := range c.h.Others {
		if m.Revision > revision && m.At <= newest {
			return
		}
	}
	if revision != 0 {
		c.add(b, "%s: revision %d is said to be too old, and nothing came after it until %v before", what, revision, c.h.Keeps)
	}
}

// clockSlack is what commit times of databases and clocks of processes may differ by.
const clockSlack = 300 * time.Millisecond

// checkOwners wants a call for each row.
func (c *checker) checkOwners() {
	if c.h.Shrunk {
		return
	}
	calls := map[string]bool{}
	for _, call := range c.h.Calls {
		calls[call.ID] = true
	}
	for _, r := range c.h.Log {
		if !calls[r.By] {
			c.add(Broken{Guarantee: Once, Key: r.Key}, "the log has %+v, which nobody has written", r)
		}
	}
}

// checkDigests wants all digests of one moment to be the same.
func (c *checker) checkDigests() {
	for i, d := range c.h.Digests {
		if first := c.h.Digests[0]; i > 0 && (d.Sum != first.Sum || d.Objects != first.Objects || d.Revision != first.Revision) {
			c.add(Broken{Guarantee: SameMemory}, "%s has %d objects with digest %s at revision %d, and %s has %d with %s at %d",
				d.Of, d.Objects, d.Sum, d.Revision, first.Of, first.Objects, first.Sum, first.Revision)
		}
	}
}
