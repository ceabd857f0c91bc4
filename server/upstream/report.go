package upstream

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Report is the result of an import.
type Report struct {
	Revision  int64            `json:"revision"` // the source's revision
	Objects   int64            `json:"objects"`
	Resources []ResourceReport `json:"resources"`
	// LeftOut are keys that nobody needs. NotTaken are objects that are lost. Both are by reason.
	LeftOut  []SkipReport `json:"leftOut,omitempty"`
	NotTaken []SkipReport `json:"notTaken,omitempty"`
}

// ResourceReport is about the objects of one resource.
type ResourceReport struct {
	Group    string `json:"group"`
	Resource string `json:"resource"`
	Objects  int64  `json:"objects"`
	// Converted counts, by their version, the objects that had another version than plinth stores.
	Converted map[string]int64 `json:"converted,omitempty"`
}

// SkipReport is about the keys that were skipped for one reason.
type SkipReport struct {
	Why  string   `json:"why"`
	Keys []string `json:"keys"`
}

// fate is the result for one key of the source.
type fate struct {
	*resource        // nil: it was skipped
	from      string // its version in the source, if that differs from the log's
	why       string // why it was skipped
	lost      bool   // it was skipped and is lost
	revision  int64  // revision of its last change in the source
}

// tally has the results for all keys of the source.
type tally struct {
	mu    sync.Mutex // guards fates
	fates map[string]fate
}

func newTally() *tally { return &tally{fates: map[string]fate{}} }

// knows reports whether a key was taken or skipped at this revision or a later one.
func (t *tally) knows(key string, revision int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	f, there := t.fates[key]
	return there && revision > 0 && f.revision >= revision
}

func (t *tally) note(key string, f fate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fates[key] = f
}

// forget removes the keys with a prefix, and reports whether there were any.
func (t *tally) forget(prefix string) (any bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key := range t.fates {
		if strings.HasPrefix(key, prefix) {
			delete(t.fates, key)
			any = true
		}
	}
	return any
}

func (t *tally) remove(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.fates, key)
}

// report is called when nobody records anything.
func (t *tally) report(revision int64) Report {
	out := Report{Revision: revision}
	resources := map[schema.GroupResource]*ResourceReport{}
	leftOut, notTaken := map[string][]string{}, map[string][]string{}
	for key, f := range t.fates {
		switch {
		case f.resource != nil:
			out.Objects++
			f.countIn(resources)
		case f.lost:
			notTaken[f.why] = append(notTaken[f.why], key)
		default:
			leftOut[f.why] = append(leftOut[f.why], key)
		}
	}
	for _, r := range resources {
		out.Resources = append(out.Resources, *r)
	}
	slices.SortFunc(out.Resources, func(a, b ResourceReport) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	out.LeftOut, out.NotTaken = skips(leftOut), skips(notTaken)
	return out
}

func (f fate) countIn(resources map[schema.GroupResource]*ResourceReport) {
	of := f.resource.name
	r := resources[of]
	if r == nil {
		r = &ResourceReport{Group: of.Group, Resource: of.Resource, Converted: map[string]int64{}}
		resources[of] = r
	}
	r.Objects++
	if f.from != "" {
		r.Converted[f.from]++
	}
}

func skips(by map[string][]string) (all []SkipReport) {
	for _, why := range slices.Sorted(maps.Keys(by)) {
		slices.Sort(by[why])
		all = append(all, SkipReport{why, by[why]})
	}
	return all
}
