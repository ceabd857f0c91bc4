package sqlstore

import "context"

// A reader that looks for few of many entries takes those that the smallest posting lists give it, and
// checks each of them itself: indexes save work, and decide nothing.

// poorShare of the entries of a range is more than a good index leaves: then another one is worth its while.
// A list that leaves half of them is no better than to scan all.
const poorShare = 8

func (v *stateView) Select(ctx context.Context, from, to string, where []Predicate, f func(*Entry) bool) error {
	x, terms := v.choose(ctx, from, to, where)
	if x == nil {
		return v.Scan(ctx, from, to, f)
	}
	return v.values.visit(ctx, func(yield func(*Entry) bool) { x.scan(terms, from, to, yield) }, f)
}

// choose returns the index and the terms in it that leave the fewest entries; nil: all are to be scanned.
func (v *stateView) choose(ctx context.Context, from, to string, where []Predicate) (*index, []string) {
	if len(where) == 0 || v.values.state.indexLimit <= 0 {
		return nil, nil
	}
	all := rank(v.entries, to) - rank(v.entries, from)
	if all < fewEntries {
		return nil, nil
	}
	x, terms, n := v.smallest(from, to, where)
	if (x == nil || n > all/poorShare) && v.buildMissing(ctx, where, all) {
		x, terms, n = v.smallest(from, to, where)
	}
	if x == nil || n > all/2 {
		return nil, nil
	}
	x.use.now()
	return x, terms
}

// smallest returns which of the indexes that there are leaves the fewest entries, and how many.
func (v *stateView) smallest(from, to string, where []Predicate) (best *index, terms []string, least int) {
	for _, p := range where {
		x := v.frozen.index(p.Attribute)
		if x == nil {
			continue
		}
		if n := x.count(p.Terms, from, to); best == nil || n < least {
			best, terms, least = x, p.Terms, n
		}
	}
	return best, terms, least
}

// buildMissing builds an index for the first of the attributes that has none, if that is worth its while.
// scanned is how many entries the reader looks at without.
func (v *stateView) buildMissing(ctx context.Context, where []Predicate, scanned int) bool {
	for _, p := range where {
		if v.frozen.index(p.Attribute) != nil {
			continue
		}
		o, due := v.values.state.orderIndex(v, p.Attribute, scanned)
		return due && v.values.buildIndex(ctx, v, o)
	}
	return false
}

// Select reads the log, which has no indexes.
func (v *logView) Select(ctx context.Context, from, to string, _ []Predicate, f func(*Entry) bool) error {
	return v.Scan(ctx, from, to, f)
}
