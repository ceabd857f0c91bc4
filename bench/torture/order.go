package torture

import (
	"math"
	"slices"
	"sort"
	"strings"
)

// order is the log, to look things up in.
type order struct {
	versions map[string][]Row // by key, in order of revisions
	keys     []string         // sorted
	by       map[string][]Row // by call
	newest   int64            // revision
}

func newOrder(log []Row) *order {
	o := &order{versions: map[string][]Row{}, by: map[string][]Row{}}
	for _, r := range log {
		o.versions[r.Key] = append(o.versions[r.Key], r)
		o.by[r.By] = append(o.by[r.By], r)
		o.newest = max(o.newest, r.Revision)
	}
	for key := range o.versions {
		o.keys = append(o.keys, key)
	}
	slices.Sort(o.keys)
	return o
}

// index returns where the version of key at a revision is, -1 if there was none yet.
func (o *order) index(key string, revision int64) int {
	versions := o.versions[key]
	return sort.Search(len(versions), func(i int) bool { return versions[i].Revision > revision }) - 1
}

// at returns what key was at a revision, and whether it was there.
func (o *order) at(key string, revision int64) (Item, bool) {
	i := o.index(key, revision)
	if i < 0 || o.versions[key][i].Deleted {
		return Item{}, false
	}
	return o.versions[key][i].Item, true
}

// until returns the last revision at which key was as it became at revision.
func (o *order) until(key string, revision int64) int64 {
	if i := o.index(key, revision) + 1; i < len(o.versions[key]) {
		return o.versions[key][i].Revision - 1
	}
	return math.MaxInt64
}

// state returns the objects below prefix at a revision, in order of their keys.
func (o *order) state(prefix string, revision int64) (items []Item) {
	i, _ := slices.BinarySearch(o.keys, prefix)
	for ; i < len(o.keys) && strings.HasPrefix(o.keys[i], prefix); i++ {
		if item, there := o.at(o.keys[i], revision); there {
			items = append(items, item)
		}
	}
	return items
}

// changes returns the rows below prefix with after < revision <= through.
func (o *order) changes(log []Row, prefix string, after, through int64) (rows []Row) {
	i := sort.Search(len(log), func(i int) bool { return log[i].Revision > after })
	for ; i < len(log) && log[i].Revision <= through; i++ {
		if strings.HasPrefix(log[i].Key, prefix) {
			rows = append(rows, log[i])
		}
	}
	return rows
}
