package etcdtest

import (
	"cmp"
	"slices"
	"time"
)

// owners returns by revision the call that made it. A call without an answer happened if its change is in the
// history; then its revision is filled in. The revision of the other calls stays 0.
func (o *order) owners(calls []Call) map[int64]*Call {
	owner := map[int64]*Call{}
	own := func(revision int64, c *Call) {
		if other := owner[revision]; other != nil {
			o.fault("revision %d is that of two calls: %+v and %+v", revision, *other, *c)
		}
		owner[revision] = c
	}
	for i := range calls {
		if c := &calls[i]; c.Error == "" && c.Writes() && c.Succeeded {
			own(c.Revision, c)
		}
	}
	put, deleted := o.evidence()
	for i := range calls {
		c := &calls[i]
		if c.Error == "" || !c.Writes() {
			continue
		}
		revision := put[c.Value]
		if c.Kind == Delete {
			revision = deleted[version{c.Keys[0], c.Expect}]
		}
		if revision != 0 && owner[revision] == nil {
			c.Revision, c.Succeeded = revision, true
			own(revision, c)
		}
	}
	return owner
}

type version struct {
	key string
	mod int64
}

// evidence returns where each value was put first, and where each version of a key was deleted.
func (o *order) evidence() (put map[string]int64, deleted map[version]int64) {
	put, deleted = map[string]int64{}, map[version]int64{}
	for _, r := range o.revisions {
		for i, c := range r.changes {
			switch {
			case c.Delete:
				deleted[version{c.KV.Key, r.before[i].Mod}] = c.KV.Mod
			case put[c.KV.Value] == 0:
				put[c.KV.Value] = c.KV.Mod
			}
		}
	}
	return put, deleted
}

// checkWrite checks that the revision of a successful write has exactly the changes that the call requested.
func (o *order) checkWrite(c *Call) {
	made := o.revision(c.Revision)
	if c.Compare {
		if before := o.at(c.Keys[0], c.Revision-1); before.Mod != c.Expect {
			o.fault("%+v wrote, but the mod revision was %d", *c, before.Mod)
		}
	}
	if len(made.changes) != len(c.Keys) {
		o.fault("%+v wrote, but revision %d has %+v", *c, c.Revision, made.changes)
		return
	}
	keys := slices.Sorted(slices.Values(c.Keys))
	for i, got := range made.changes {
		if got.KV.Key != keys[i] || got.Delete != (c.Kind == Delete) || !got.Delete && (got.KV.Value != c.Value || got.KV.Lease != c.Lease) {
			o.fault("%+v wrote, but revision %d has %+v", *c, c.Revision, made.changes)
		}
	}
}

// checkRead checks that a call read the state of its revision.
func (o *order) checkRead(c *Call) {
	from, end := c.Keys[0], c.Keys[0]+"\x00"
	if c.Kind == List {
		end = c.Keys[1]
	}
	revision := c.Revision
	if c.At != 0 {
		revision = c.At
	}
	if revision > o.newest && c.Revision > o.newest {
		o.fault("%+v has revision %d, but the newest is %d", *c, c.Revision, o.newest)
	}
	want := o.state(from, end, revision)
	count := int64(len(want))
	more := c.Limit > 0 && count > c.Limit
	if more {
		want = want[:c.Limit]
	}
	if !slices.Equal(want, c.KVs) {
		o.fault("%+v: at %d it should have read %+v", *c, revision, want)
	}
	if c.Kind == List && (c.Count != count || c.More != more) {
		o.fault("%+v: at %d there were %d keys, more: %v", *c, revision, count, more)
	}
	if c.Writes() && c.Compare && o.at(c.Keys[0], c.Revision).Mod == c.Expect {
		o.fault("%+v did not write, but at %d the mod revision was the one it expected", *c, revision)
	}
}

// checkTimes checks that revisions follow time: a call that began after the answer to another one has at
// least its revision, and a newer one if it writes.
func (o *order) checkTimes(calls []Call) {
	type answered struct {
		end      time.Duration
		revision int64
	}
	var ends []answered
	for i := range calls {
		if c := &calls[i]; c.Error == "" {
			ends = append(ends, answered{c.End, c.Revision})
		}
	}
	slices.SortFunc(ends, func(a, b answered) int { return cmp.Compare(a.end, b.end) })
	for i := 1; i < len(ends); i++ {
		ends[i].revision = max(ends[i].revision, ends[i-1].revision)
	}
	for i := range calls {
		c := &calls[i]
		if c.Revision == 0 { // it did not happen, or its revision is unknown
			continue
		}
		n, _ := slices.BinarySearchFunc(ends, c.Begin, func(a answered, t time.Duration) int { return cmp.Compare(a.end, t) })
		if n == 0 {
			continue
		}
		before := ends[n-1].revision
		if wrote := c.Writes() && c.Succeeded; c.Revision < before || wrote && c.Revision == before {
			o.fault("%+v has revision %d after another was answered %d", *c, c.Revision, before)
		}
	}
}

// checkCompactions checks that revisions can be read until they are compacted, and not afterwards.
func (o *order) checkCompactions(calls []Call) {
	var compactions []*Call
	for i := range calls {
		if calls[i].Kind == Compact {
			compactions = append(compactions, &calls[i])
		}
	}
	for i := range calls {
		c := &calls[i]
		if c.At == 0 || c.Error != "" && !c.Compacted {
			continue
		}
		done, begun := int64(0), int64(0) // compactions that had certainly, and that may have, happened before c
		for _, other := range compactions {
			if other == c {
				continue
			}
			if other.Begin <= c.End {
				begun = max(begun, other.At)
			}
			if other.Error == "" && other.End < c.Begin {
				done = max(done, other.At)
			}
		}
		equal := int64(0) // a revision cannot be compacted twice
		if c.Kind == Compact {
			equal = 1
		}
		if !c.Compacted && c.At < done+equal {
			o.fault("%+v was answered after %d was compacted", *c, done)
		}
		if c.Compacted && c.At >= begun+equal {
			o.fault("%+v, but only %d was compacted", *c, begun)
		}
	}
}
