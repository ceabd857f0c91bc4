package changelog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Retention says which old versions of objects stay readable when compaction takes them out of the log. A
// nil Retention keeps none and costs nothing; one without rules notes in addition what is lost.
type Retention struct {
	rules map[string]Rule // by Rule.Resource
}

// Rule is how much is kept of the objects of some resources.
type Rule struct {
	// Resource is RESOURCE.GROUP, or RESOURCE of the core group, or *.GROUP, or * for all.
	Resource string
	// For is how long a version stays after the change that superseded it; KeepForever: without an end.
	For time.Duration
	// Count is how many old versions of an object stay at most; 0: any number.
	Count int
}

// KeepForever is the Rule.For of versions that stay.
const KeepForever = time.Duration(math.MaxInt64)

// NewRetention returns what rules say. Of several that fit a resource the most specific counts. There are
// no two for the same Resource.
func NewRetention(rules ...Rule) *Retention {
	rt := &Retention{rules: make(map[string]Rule, len(rules))}
	for _, r := range rules {
		rt.rules[r.Resource] = r
	}
	return rt
}

// Rules returns the rules in the order of their resources.
func (rt *Retention) Rules() []Rule {
	if rt == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(rt.rules), func(a, b Rule) int { return strings.Compare(a.Resource, b.Resource) })
}

// Of returns the rule for an object's key. What servers keep for each other has none: its groups
// begin with an underscore.
func (rt *Retention) Of(key string) (r Rule, ok bool) {
	if rt == nil || len(rt.rules) == 0 {
		return r, false
	}
	parts := strings.SplitN(key, "/", 5) // "", "registry", group, resource, name
	if len(parts) < 5 || strings.HasPrefix(parts[2], "_") {
		return r, false
	}
	name, group := parts[3], parts[2]
	if group != "core" {
		name += "." + group
	}
	for _, resource := range []string{name, "*." + group, "*"} {
		if r, ok = rt.rules[resource]; ok {
			return r, r.For > 0
		}
	}
	return r, false
}

// Fingerprint tells rules from others.
func (rt *Retention) Fingerprint() string {
	if rt == nil {
		return ""
	}
	sum := sha256.New()
	for _, r := range rt.Rules() {
		fmt.Fprintf(sum, "%s=%d/%d\n", r.Resource, r.For, r.Count)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Old is a row that something has superseded, or a tombstone, without its value. Until is the
// revision and time of what superseded it; of a tombstone they are its own.
type Old struct {
	ID      int64
	Key     string
	UntilID int64
	UntilAt int64
	Expires int64 // of a row that is kept, Unix milliseconds
	Bytes   int64 // of its key and value, if that was asked for
}

// Never is the Old.Expires of a row that stays: the end of the year 9999, in Unix milliseconds.
const Never = 253402300799999

// Expiry returns until when a row stays, in Unix milliseconds, and 0 if it does not.
func (rt *Retention) Expiry(o Old) int64 {
	r, ok := rt.Of(o.Key)
	switch {
	case !ok:
		return 0
	case r.For == KeepForever:
		return Never
	}
	return o.UntilAt + r.For.Milliseconds()
}

// Cut says that the versions of a key up to ID are lost. What is known of a key has no holes: older
// versions go with a version that is lost.
type Cut struct {
	Key   string
	ID    int64
	Until int64 // the revision that superseded the row with that ID
}

// Cuts joins what is lost of each key, in any order, to one Cut of each key, in the order of keys.
func Cuts(lost []Old) []Cut {
	last := map[string]Cut{}
	for _, o := range lost {
		if o.ID >= last[o.Key].ID {
			last[o.Key] = Cut{o.Key, o.ID, o.UntilID}
		}
	}
	return slices.SortedFunc(maps.Values(last), func(a, b Cut) int { return strings.Compare(a.Key, b.Key) })
}

// Lost returns, by resource, up to which revision nothing is certain any more about the state of the
// resource after these cuts.
func Lost(cuts []Cut) map[string]int64 {
	lost := map[string]int64{}
	for _, c := range cuts {
		resource := ResourceOf(c.Key)
		lost[resource] = max(lost[resource], c.Until)
	}
	return lost
}

// Sorted is what becomes of rows that compaction takes out of the log.
type Sorted struct {
	Kept   []Old            // with Expires
	Lost   []Cut            // of the others
	Counts map[int][]string // keys of which some are kept, by how many are at most
}

// Sort says what becomes of rows that compaction takes out of the log now, in Unix milliseconds. The
// rows of each key are in order.
func (rt *Retention) Sort(rows []Old, now int64) (s Sorted) {
	var lost []Old
	newer := map[string]int{} // rows of a key that are kept
	s.Counts = map[int][]string{}
	for _, o := range slices.Backward(rows) {
		o.Expires = rt.Expiry(o)
		r, _ := rt.Of(o.Key)
		if o.Expires <= now || r.Count > 0 && newer[o.Key] >= r.Count {
			lost = append(lost, o)
			continue
		}
		if newer[o.Key]++; newer[o.Key] == 1 && r.Count > 0 {
			s.Counts[r.Count] = append(s.Counts[r.Count], o.Key)
		}
		s.Kept = append(s.Kept, o)
	}
	slices.Reverse(s.Kept)
	s.Lost = Cuts(lost)
	return s
}

// Refit gives rows of past the expiry that rt gives them. It returns those that had another one, and
// the keys of those whose rule has a count, by that.
func (rt *Retention) Refit(rows []Old) (changed []Old, counts map[int][]string) {
	counts = map[int][]string{}
	seen := map[string]bool{}
	for _, o := range rows {
		had := o.Expires
		if o.Expires = rt.Expiry(o); o.Expires != had {
			changed = append(changed, o)
		}
		if r, _ := rt.Of(o.Key); r.Count > 0 && !seen[o.Key] {
			seen[o.Key] = true
			counts[r.Count] = append(counts[r.Count], o.Key)
		}
	}
	return changed, counts
}

// Known is what a log knows of the past of a range of keys.
type Known struct {
	Floor  int64
	Since  int64 // from which revision on past is in use, negative if it is not
	Lost   int64 // the highest revision that superseded a version that is lost
	Oldest int64 // revision of the oldest version of the key, if the range is of one; 0: none
}

// From returns the revision from which on the range's states and changes are known.
func (k Known) From() int64 {
	if k.Since < 0 {
		return k.Floor
	}
	return min(k.Floor, max(k.Since, k.Lost))
}

// Excess returns those of the rows, which are in the order in which they go, that have to go for bytes to be
// no more than limit.
func Excess(rows []Old, bytes, limit int64) []Old {
	for i := range rows {
		if bytes <= limit {
			return rows[:i]
		}
		bytes -= rows[i].Bytes
	}
	return rows
}

// Check returns ErrCompacted if the range's state at a revision may not be known.
func (k Known) Check(revision int64) error {
	switch {
	case revision >= k.Floor, k.Since >= 0 && revision >= max(k.Since, k.Lost), k.Oldest > 0 && revision >= k.Oldest:
		return nil
	}
	return ErrCompacted
}
