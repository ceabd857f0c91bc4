package etcdtest

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
)

// order has all changes of a key space in the order of their revisions, as the watches received them.
type order struct {
	revisions []revision // revisions[i] is revision i+2; 2 is the first one after the empty key space
	versions  map[string][]KV
	keys      []string // the keys of versions, sorted
	newest    int64    // the newest revision that is known
	faults    []string
}

// revision is what one transaction changed.
type revision struct {
	changes []Change // sorted by key
	before  []KV     // the previous state of each key; zero if it did not exist
	seen    Response // the first response that contained it
}

const firstWrite = 2 // the revision of the first one

func (o *order) fault(format string, a ...any) {
	if len(o.faults) < 50 { // one fault causes others
		o.faults = append(o.faults, fmt.Sprintf(format, a...))
	}
}

// unite merges what all watches received. Two watches must not contradict each other.
func unite(watches []*Watch) *order {
	o := &order{versions: map[string][]KV{}}
	all := map[int64]map[string]Change{}
	seen := map[int64]Response{}
	for _, w := range watches {
		for _, s := range w.Streams {
			for _, r := range s.Responses {
				o.uniteResponse(w, r, all, seen)
			}
		}
	}
	for r := int64(firstWrite); r <= o.newest; r++ {
		o.append(r, all[r], seen[r])
	}
	for key := range o.versions {
		o.keys = append(o.keys, key)
	}
	slices.Sort(o.keys)
	return o
}

func (o *order) uniteResponse(w *Watch, r Response, all map[int64]map[string]Change, seen map[int64]Response) {
	for _, c := range r.Changes {
		mod := c.KV.Mod
		o.newest = max(o.newest, mod)
		if all[mod] == nil {
			all[mod] = map[string]Change{}
		}
		if known, is := all[mod][c.KV.Key]; is && (known.KV != c.KV || known.Delete != c.Delete) {
			o.fault("watch %s was told %+v, another %+v", w.Name, c, known)
		}
		all[mod][c.KV.Key] = Change{Delete: c.Delete, KV: c.KV}
		if first, is := seen[mod]; !is || r.At < first.At {
			seen[mod] = r
		}
	}
}

// append adds the changes of revision r, and checks that they follow from the state before.
func (o *order) append(r int64, changes map[string]Change, seen Response) {
	next := revision{seen: seen}
	for _, c := range changes {
		next.changes = append(next.changes, c)
	}
	slices.SortFunc(next.changes, func(a, b Change) int { return cmp.Compare(a.KV.Key, b.KV.Key) })
	if len(next.changes) == 0 {
		o.fault("no watch was told of revision %d", r)
	}
	for _, c := range next.changes {
		before := o.at(c.KV.Key, r-1)
		next.before = append(next.before, before)
		want := KV{Key: c.KV.Key, Mod: r}
		if !c.Delete {
			want.Value, want.Lease, want.Create, want.Version = c.KV.Value, c.KV.Lease, before.Create, before.Version+1
			if before == (KV{}) {
				want.Create = r
			}
		}
		if c.KV != want || c.Delete && before == (KV{}) {
			o.fault("revision %d: %+v does not follow from %+v", r, c, before)
		}
		o.versions[c.KV.Key] = append(o.versions[c.KV.Key], c.KV)
	}
	o.revisions = append(o.revisions, next)
}

// revision returns the changes of revision r; nothing if it is unknown.
func (o *order) revision(r int64) revision {
	if i := r - firstWrite; i >= 0 && i < int64(len(o.revisions)) {
		return o.revisions[i]
	}
	return revision{}
}

// at returns the state of key at a revision.
func (o *order) at(key string, revision int64) KV {
	versions := o.versions[key]
	i := sort.Search(len(versions), func(i int) bool { return versions[i].Mod > revision }) - 1
	if i < 0 || versions[i].Version == 0 {
		return KV{}
	}
	return versions[i]
}

// state returns the keys of [from, end) at a revision.
func (o *order) state(from, end string, revision int64) (kvs []KV) {
	i, _ := slices.BinarySearch(o.keys, from)
	for ; i < len(o.keys) && o.keys[i] < end; i++ {
		if kv := o.at(o.keys[i], revision); kv != (KV{}) {
			kvs = append(kvs, kv)
		}
	}
	return kvs
}
