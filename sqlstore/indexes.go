package sqlstore

import (
	"context"
	"math"
	"time"
)

// Indexes are built by the readers who would have use for them, from the copy of the state that they read,
// and kept by the tail from then on. They go when nobody has had use for them for a while, or when all together
// take more memory than Options.IndexBytes.
const (
	// fewEntries are scanned without an index.
	fewEntries = 64
	// manyEntries of a resource get an index for the first scan of nearly all, such as those of the one
	// namespace that has most. With fewer, the fourth is the first that takes longer than to build the index.
	manyEntries  = 1000
	scansForFew  = 4
	mostIndexes  = 16               // of one resource, because each costs every write of it
	mostAsked    = 64               // attributes without an index of one resource, whose scans are counted
	indexIdle    = 10 * time.Minute // after which an index goes
	indexSettled = time.Minute      // after which it goes if another one needs its place
)

// indexing is the part of a resource that belongs to its indexes. Guarded by state.mu.
type indexing struct {
	building map[string]bool
	asked    map[string]int // entries scanned for lack of an index, by attribute
	epoch    int            // grows when entries change without an event
}

func (as *attributes) indexes() (n int) {
	for _, a := range as.known {
		if a.index != nil {
			n++
		}
	}
	return n
}

// order is what a reader needs to build an index.
type order struct {
	attribute string
	read      TermOf
	epoch     int
}

// orderIndex notes that a reader of v looks at scanned entries because there is no index for an attribute. If
// that has cost enough, the reader is to build it, which others leave to it then.
func (st *state) orderIndex(v *stateView, attribute string, scanned int) (o order, due bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	r := st.resource(v.resource)
	known := r.attributes.find(attribute)
	if r.building[attribute] || known != nil && known.index != nil || v.from < r.start {
		return o, false // somebody builds it, or it does not fit this old state, or will not fit the present one
	}
	if r.asked == nil || len(r.asked) >= mostAsked && r.asked[attribute] == 0 {
		r.asked = make(map[string]int)
	}
	size := v.entries.Len()
	r.asked[attribute] += scanned
	if enough := size * scansForFew; r.asked[attribute] < enough && (size < manyEntries || r.asked[attribute] < size-size/poorShare) {
		return o, false
	}
	if size > st.indexLimit/postingBytes || !st.makePlace(r) {
		r.asked[attribute] = -size * mostIndexes
		return o, false
	}
	delete(r.asked, attribute)
	if r.building == nil {
		r.building = make(map[string]bool)
	}
	r.building[attribute] = true
	return order{attribute, st.format.TermOf(attribute), r.epoch}, true
}

// buildIndex builds an index of a view's state and lets the tail keep it; false if values could not be read.
func (v *values) buildIndex(ctx context.Context, view *stateView, o order) bool {
	x := newIndex(o.attribute, o.read)
	var err error
	for e, failed := range v.fetched(ctx, view.all()) {
		if err = failed; err != nil {
			break
		}
		term := o.read.termOf(e)
		if v.state.bounded() {
			e = view.held(e)
		}
		x.add(e, term)
	}
	if err == nil {
		view.frozen.offer(x.copy())
	}
	v.state.keepIndex(view, o, x, err == nil)
	return err == nil
}

// keepIndex lets the tail keep an index that was built, unless that has failed.
func (st *state) keepIndex(v *stateView, o order, x *index, built bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	r := st.resource(v.resource)
	delete(r.building, o.attribute)
	st.evictor.check() // nothing of r has left memory meanwhile
	if !built || r.epoch != o.epoch || v.from < r.start {
		return
	}
	for _, ev := range r.since(v.from) {
		x.change(ev.Prev, ev.left(), o.read.termOf(ev.Prev), o.read.termOf(ev.left()))
	}
	x.use.now()
	a := r.attributes.make(o.attribute, o.read)
	a.index = x
	if r.copied != nil {
		r.copied.offer(x.copy())
	}
	st.shrinkIndexes(time.Now(), indexIdle)
}

// makePlace drops an index of r that is used least if there are too many; it is false if all are in use.
func (st *state) makePlace(r *resource) bool {
	if r.attributes.indexes() < mostIndexes {
		return true
	}
	oldest := leastUsed(r.attributes.known)
	if oldest.index.idle(time.Now()) < indexSettled {
		return false
	}
	oldest.index = nil
	return true
}

// dropIndexes drops indexes that nobody has use for.
func (st *state) dropIndexes(now time.Time) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.shrinkIndexes(now, indexIdle)
}

// shrinkIndexes drops indexes that were idle for so long, and those used least while all take too much
// memory. mu is held.
func (st *state) shrinkIndexes(now time.Time, idle time.Duration) {
	var all []*attribute
	bytes := 0
	for _, r := range st.resources {
		for _, a := range r.attributes.known {
			if a.index != nil && a.index.idle(now) > idle {
				a.index = nil
			}
			if a.index != nil {
				all = append(all, a)
				bytes += a.index.bytes
			}
		}
	}
	for bytes > st.indexLimit && len(all) > 0 {
		oldest := leastUsed(all)
		bytes -= oldest.index.bytes
		oldest.index = nil
	}
	for _, r := range st.resources {
		r.attributes.forget()
	}
}

// leastUsed returns the attribute whose index was of use longest ago; nil if there are no indexes.
func leastUsed(all []*attribute) (oldest *attribute) {
	last := int64(math.MaxInt64)
	for _, a := range all {
		if a.index != nil && a.index.use.last.Load() < last {
			oldest, last = a, a.index.use.last.Load()
		}
	}
	return oldest
}

func (x *index) idle(now time.Time) time.Duration {
	return time.Duration(now.UnixNano() - x.use.last.Load())
}
