package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// Store reports what a sqlstore.Store counts, read at each scrape.
type Store struct {
	Stats func() sqlstore.Stats
	Lags  func() Lags // nil: they are not known
}

// Lags are how far parts of a store are behind, in seconds.
type Lags struct{ Reads, Compaction, Watcher float64 }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	objects = desc("apiserver_storage_objects", "Objects stored, by resource.", "resource")

	storeGauges = []struct {
		desc *prometheus.Desc
		of   func(*sqlstore.Stats) float64
	}{
		{desc("plinth_revision", "Newest revision that reads see."), func(s *sqlstore.Stats) float64 { return float64(s.Revision) }},
		{desc("plinth_compacted_revision", "Revision below which history is gone."), func(s *sqlstore.Stats) float64 { return float64(s.Floor) }},
		{desc("plinth_watchers", "Watches on the store."), func(s *sqlstore.Stats) float64 { return float64(s.Watchers) }},
		{desc("plinth_window_bytes", "Memory held by recent events for watches."), func(s *sqlstore.Stats) float64 { return float64(s.WindowBytes) }},
		{desc("plinth_window_events", "Recent events held for watches."), func(s *sqlstore.Stats) float64 { return float64(s.WindowEvents) }},
		{desc("plinth_database_usable", "1 while the database takes reads and writes."), func(s *sqlstore.Stats) float64 { return oneIf(s.Usable) }},
		{desc("plinth_database_full", "1 while only deletes are taken, because the disk is nearly full (SQLite)."), func(s *sqlstore.Stats) float64 { return oneIf(s.Full) }},
		{desc("plinth_indexes", "Indexes held in memory for selective lists."), func(s *sqlstore.Stats) float64 { return float64(s.Indexes) }},
		{desc("plinth_index_bytes", "About what these indexes take in memory."), func(s *sqlstore.Stats) float64 { return float64(s.IndexBytes) }},
		{desc("plinth_state_bytes", "About what objects take in memory, if that is bounded."), func(s *sqlstore.Stats) float64 { return float64(s.StateBytes) }},
		{desc("plinth_state_away_objects", "Objects whose values are not in memory."), func(s *sqlstore.Stats) float64 { return float64(s.Away) }},
		{desc("plinth_kept_bound_bytes", "Bytes of the keys and values of old versions that --keep keeps at most, by --keep-size; 0: any number."), func(s *sqlstore.Stats) float64 { return float64(s.KeptBound) }},
		{desc("plinth_snapshots", "Past states kept for paginated lists."), func(s *sqlstore.Stats) float64 { return float64(s.Snapshots) }},
	}

	lagGauges = []struct {
		desc *prometheus.Desc
		of   func(*Lags) float64
	}{
		{desc("plinth_replica_lag_seconds", "For how long reads have lacked what other processes wrote; 0 if nothing is missing."), func(l *Lags) float64 { return l.Reads }},
		{desc("plinth_compaction_lag_seconds", "For how long rows have stayed that are older than the history; 0 if there are none."), func(l *Lags) float64 { return l.Compaction }},
		{desc("plinth_watcher_lag_seconds", "Age of the oldest change that a watch has yet to take; 0 if there is none."), func(l *Lags) float64 { return l.Watcher }},
	}

	transactionSeconds = desc("plinth_transaction_duration_seconds", "Seconds that write transactions take.")

	storeCounters = []struct {
		desc *prometheus.Desc
		of   func(*sqlstore.Stats) float64
	}{
		{desc("plinth_transactions_total", "Write transactions tried."), func(s *sqlstore.Stats) float64 { return float64(s.Batches) }},
		{desc("plinth_changes_total", "Changes in write transactions."), func(s *sqlstore.Stats) float64 { return float64(s.Changes) }},
		{desc("plinth_conflicts_total", "Changes whose expectation failed."), func(s *sqlstore.Stats) float64 { return float64(s.Conflicts) }},
		{desc("plinth_transaction_seconds_total", "Seconds spent in write transactions."), func(s *sqlstore.Stats) float64 { return s.AppendSeconds }},
		{desc("plinth_head_reads_total", "Questions to the database for its newest revision."), func(s *sqlstore.Stats) float64 { return float64(s.HeadReads) }},
		{desc("plinth_head_read_seconds_total", "Seconds that these questions took."), func(s *sqlstore.Stats) float64 { return s.HeadSeconds }},
		{desc("plinth_value_reads_total", "Values read from the database for lack of room in memory."), func(s *sqlstore.Stats) float64 { return float64(s.ValueReads) }},
		{desc("plinth_watch_reads_total", "Pages of the log read by watches that start or fall behind the window."), func(s *sqlstore.Stats) float64 { return float64(s.WatchReads) }},
		{desc("plinth_compacted_rows_total", "Rows deleted by this process."), func(s *sqlstore.Stats) float64 { return float64(s.Compacted) }},
		{desc("plinth_kept_rows_total", "Of these, old versions that --keep keeps."), func(s *sqlstore.Stats) float64 { return float64(s.Kept) }},
		{desc("plinth_trimmed_rows_total", "Old versions deleted by this process that --keep no longer keeps."), func(s *sqlstore.Stats) float64 { return float64(s.Trimmed) }},
		{desc("plinth_database_outages_total", "Times that the database could not be used."), func(s *sqlstore.Stats) float64 { return float64(s.Outages) }},
		{desc("plinth_database_set_back_total", "Times that the database was found set back while it was served."), func(s *sqlstore.Stats) float64 { return float64(s.SetBacks) }},
		{desc("plinth_lost_writes_total", "Acknowledged writes known to this process that were gone then."), func(s *sqlstore.Stats) float64 { return float64(s.LostWrites) }},
	}
)

// Describe implements prometheus.Collector.
func (c Store) Describe(out chan<- *prometheus.Desc) {
	out <- objects
	out <- transactionSeconds
	for _, g := range lagGauges {
		out <- g.desc
	}
	for _, g := range storeGauges {
		out <- g.desc
	}
	for _, n := range storeCounters {
		out <- n.desc
	}
}

// Collect implements prometheus.Collector.
func (c Store) Collect(out chan<- prometheus.Metric) {
	s := c.Stats()
	for resource, n := range s.Entries {
		out <- prometheus.MustNewConstMetric(objects, prometheus.GaugeValue, float64(n), ResourceLabel(resource))
	}
	for _, g := range storeGauges {
		out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.of(&s))
	}
	for _, n := range storeCounters {
		out <- prometheus.MustNewConstMetric(n.desc, prometheus.CounterValue, n.of(&s))
	}
	out <- histogram(&s)
	if c.Lags == nil {
		return
	}
	lags := c.Lags()
	for _, g := range lagGauges {
		out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.of(&lags))
	}
}

// histogram is of the durations of write transactions.
func histogram(s *sqlstore.Stats) prometheus.Metric {
	buckets, below := make(map[float64]uint64, len(sqlstore.AppendBounds)), uint64(0)
	for i, bound := range sqlstore.AppendBounds {
		below += uint64(s.Appends[i])
		buckets[bound] = below
	}
	return prometheus.MustNewConstHistogram(transactionSeconds, below+uint64(s.Appends[len(sqlstore.AppendBounds)]), s.AppendSeconds, buckets)
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// ResourceLabel turns a key's resource, /registry/apps/deployments/, into upstream's
// label: deployments.apps, and the bare name for the core group.
func ResourceLabel(resource string) string {
	group, name := object.SplitPrefix(resource)
	switch {
	case name == "":
		return resource
	case group == "":
		return name
	}
	return name + "." + group
}
