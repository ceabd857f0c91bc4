package sqlstore

import (
	"errors"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Stats are a Store's figures for metrics. Counts are since Open.
type Stats struct {
	Revision int64
	Floor    int64

	Usable bool // the database takes reads and writes
	Full   bool // it takes deletes only, because its disk is nearly full

	Entries      map[string]int // objects by resource
	Watchers     int64
	WindowBytes  int
	WindowEvents int
	Snapshots    int // kept for paginated lists
	Indexes      int // for selective reads
	IndexBytes   int // about what they take in memory
	StateBytes   int // about what the objects take in memory, if that is bounded
	Away         int // objects whose values are not in memory

	Batches       int64 // transactions tried
	Changes       int64 // changes in them
	Conflicts     int64 // changes whose expectation failed
	AppendSeconds float64
	Appends       [len(AppendBounds) + 1]int64 // transactions by the first of AppendBounds that they kept to; the last are slower than all
	HeadReads     int64                        // queries for Sync
	HeadSeconds   float64                      // that they took
	ValueReads    int64                        // values read from the log, because they were not in memory
	WatchReads    int64                        // pages that watchers behind the window read from the log
	Compacted     int64                        // rows deleted from the log by this process
	Kept          int64                        // of these, old versions that Options.Retention keeps
	Trimmed       int64                        // old versions deleted by this process that were kept no longer
	KeptBound     int64                        // bytes of old versions that stay at most; 0: any number
	Outages       int64                        // times that the database could not be used
	SetBacks      int64                        // times that the database was found set back
	LostWrites    int64                        // acknowledged writes that were gone then, as far as this process knew them
}

// Stats returns the figures of this moment.
func (s *Store) Stats() Stats {
	v := Stats{
		Floor:         s.Floor(),
		Watchers:      s.stats.watchers.Load(),
		ValueReads:    s.stats.valueReads.Load(),
		Batches:       s.stats.batches.Load(),
		Changes:       s.stats.changes.Load(),
		Conflicts:     s.stats.conflicts.Load(),
		AppendSeconds: time.Duration(s.stats.appendNanos.Load()).Seconds(),
		HeadReads:     s.stats.headReads.Load(),
		HeadSeconds:   time.Duration(s.stats.headNanos.Load()).Seconds(),
		Outages:       s.stats.outages.Load(),
		WatchReads:    s.stats.watchReads.Load(),
		Compacted:     s.stats.compactedDeleted.Load(),
		Kept:          s.stats.kept.Load(),
		Trimmed:       s.stats.trimmed.Load(),
		KeptBound:     s.stats.keptBound.Load(),
		SetBacks:      s.stats.setBacks.Load(),
		LostWrites:    s.stats.lostWrites.Load(),
		Usable:        s.health.healthy() == nil,
		Full:          errors.Is(s.log.Condition(), changelog.ErrFull),
	}
	for i := range v.Appends {
		v.Appends[i] = s.stats.appends[i].Load()
	}
	s.state.addStats(&v)
	return v
}

func (st *state) addStats(v *Stats) {
	st.mu.RLock()
	defer st.mu.RUnlock()
	v.Revision = st.applied.Load()
	v.WindowBytes = st.window.bytes
	v.WindowEvents = st.window.order.len()
	v.StateBytes, v.Away = st.evictor.values+st.evictor.fixed, st.evictor.away
	v.Entries = make(map[string]int, len(st.resources))
	for name, r := range st.resources {
		v.Entries[name] = r.entries.Len()
		v.Snapshots += len(r.kept)
		for _, a := range r.attributes.known {
			if a.index != nil {
				v.Indexes++
				v.IndexBytes += a.index.bytes
			}
		}
	}
}
