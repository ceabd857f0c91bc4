package changelog

import "math"

// HistoryQuery asks for changes that are still there, in the log or kept beside it.
type HistoryQuery struct {
	From, To       string // of keys in [From, To); both empty: of all keys
	After, Through int64  // of revisions with After < revision <= Through
	Oldest         bool   // the oldest first; else the newest
	Sizes          bool   // with the sizes of values
	Limit          int    // most changes
}

// HistoryRow is a change with who has made it.
type HistoryRow struct {
	Row           // Author and Value are not set: see Store.OldEntries
	Origin Origin // empty if it is not known
	Size   int64  // bytes of the value as the log holds it, if they were asked for
}

// MostOldValues is how many values OldValues returns at once, at most.
const MostOldValues = 500

// Forever is a revision that no log reaches.
const Forever = math.MaxInt64
