package etcd

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// metrics are the metrics of a Server. They have etcd's names if they have the same meaning.
type metrics struct {
	registry *prometheus.Registry

	granted, renewed, revoked, expired prometheus.Counter // leases

	healthy, unhealthy prometheus.Counter // answers of /health
	checks             *prometheus.CounterVec

	requests requestMetrics
}

func newMetrics(s *Server) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	counter := func(name, help string) prometheus.Counter { return newCounter(m.registry, name, help) }
	m.granted = counter("etcd_debugging_lease_granted_total", "Leases granted by this member.")
	m.renewed = counter("etcd_debugging_lease_renewed_total", "Renewals of leases by this member.")
	m.revoked = counter("etcd_debugging_lease_revoked_total", "Leases revoked by this member, by request or because they had expired.")
	m.expired = counter("etcd_debugging_server_lease_expired_total", "Leases that this member revoked because they had expired.")
	m.healthy = counter("etcd_server_health_success", "Answers of /health that all is well.")
	m.unhealthy = counter("etcd_server_health_failures", "Answers of /health that something is wrong.")
	m.checks = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "etcd_server_healthchecks_total", Help: "Health checks by kind, name and result.",
	}, []string{"type", "name", "status"})
	m.requests.register(m.registry)
	m.registry.MustRegister(m.checks, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &figures{s: s})
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

func newCounter(to prometheus.Registerer, name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	to.MustRegister(c)
	return c
}

func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	hasLeader      = gauge("etcd_server_has_leader", "1 while the database can be used.")
	isLeader       = gauge("etcd_server_is_leader", "1: every member leads.")
	serverID       = gauge("etcd_server_id", "1, with the member's id.", "server_id")
	serverVersion  = gauge("etcd_server_version", "1, with the release of etcd whose answers are given.", "server_version")
	inCluster      = gauge("etcd_cluster_version", "1, with the version that is told of the cluster.", "cluster_version")
	leaderChanges  = prometheus.NewDesc("etcd_server_leader_changes_seen_total", "0: there are no elections.", nil, nil)
	committed      = gauge("etcd_server_proposals_committed_total", "Newest revision, which stands for the index of raft.")
	applied        = gauge("etcd_server_proposals_applied_total", "Newest revision, which stands for the index of raft.")
	commitSeconds  = prometheus.NewDesc("etcd_disk_backend_commit_duration_seconds", "Time that a transaction of the database took, with all requests that shared it.", nil, nil)
	watchersTotal  = gauge("etcd_debugging_mvcc_watcher_total", "Open watches.")
	quotaBytes     = gauge("etcd_server_quota_backend_bytes", "Quota of the database.")
	alarmActive    = gauge("etcd_server_alarms", "1 for each alarm that is active.", "server_id", "alarm_type")
	current        = gauge("etcd_debugging_mvcc_current_revision", "Newest revision.")
	compacted      = gauge("etcd_debugging_mvcc_compact_revision", "Compacted revision; -1 if there is none.")
	keysTotal      = gauge("etcd_debugging_mvcc_keys_total", "Keys.")
	databaseTotal  = gauge("etcd_mvcc_db_total_size_in_bytes", "Bytes that the database takes.")
	databaseInUse  = gauge("etcd_mvcc_db_total_size_in_use_in_bytes", "Bytes that the database takes; what of them is free is not known.")
	transactions   = prometheus.NewDesc("plinth_log_transactions_total", "Transactions of the database.", nil, nil)
	transactionSec = prometheus.NewDesc("plinth_log_transaction_seconds_total", "Time that transactions of the database took.", nil, nil)
	setBacks       = prometheus.NewDesc("plinth_database_set_back_total", "Times that the database was found set back while it was served.", nil, nil)
	lostWrites     = prometheus.NewDesc("plinth_lost_writes_total", "Acknowledged writes known to this member that were gone then.", nil, nil)
)

// figures collects values that are known without a query and, at intervals, the size of the database.
type figures struct {
	s *Server

	mu    sync.Mutex
	size  changelog.Size
	known bool
	until time.Time // when size expires
}

const (
	sizeFresh   = 15 * time.Second // the shortest interval between two queries
	sizeShare   = 50               // queries take at most 1/50 of the time
	sizeTimeout = 5 * time.Second
)

// Describe implements prometheus.Collector.
func (f *figures) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{leaderChanges, committed, applied, commitSeconds, watchersTotal, hasLeader, isLeader, serverID, serverVersion, inCluster, quotaBytes, alarmActive,
		current, compacted, keysTotal, databaseTotal, databaseInUse, transactions, transactionSec, setBacks, lostWrites} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (f *figures) Collect(out chan<- prometheus.Metric) {
	set := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	s, id := f.s, fmt.Sprintf("%x", f.s.memberID)
	stats := s.store.Stats()
	usable := 0.0
	if s.usable() == nil {
		usable = 1
	}
	set(hasLeader, usable)
	set(isLeader, 1)
	set(serverID, 1, id)
	set(serverVersion, 1, Version)
	set(inCluster, 1, clusterRelease)
	set(quotaBytes, float64(s.o.QuotaBackendBytes))
	if known := s.alarms.known.Load(); known != nil {
		for _, a := range *known {
			set(alarmActive, 1, fmt.Sprintf("%x", a.MemberID), a.Alarm.String())
		}
	}
	set(current, float64(s.revision()))
	set(committed, float64(s.revision()))
	set(applied, float64(s.revision()))
	set(watchersTotal, float64(stats.Watchers))
	set(compacted, float64(compactedBy(stats.Floor)))
	n := 0
	for _, entries := range stats.Entries {
		n += entries
	}
	set(keysTotal, float64(n))
	if size, ok := f.sizeNow(); ok {
		set(databaseTotal, float64(size.Bytes))
		set(databaseInUse, float64(size.Bytes))
	}
	out <- prometheus.MustNewConstMetric(leaderChanges, prometheus.CounterValue, 0)
	buckets, below := make(map[float64]uint64, len(sqlstore.AppendBounds)), uint64(0)
	for i, bound := range sqlstore.AppendBounds {
		below += uint64(stats.Appends[i])
		buckets[bound] = below
	}
	out <- prometheus.MustNewConstHistogram(commitSeconds, uint64(max(stats.Batches, int64(below))), stats.AppendSeconds, buckets)
	out <- prometheus.MustNewConstMetric(transactions, prometheus.CounterValue, float64(stats.Batches))
	out <- prometheus.MustNewConstMetric(transactionSec, prometheus.CounterValue, stats.AppendSeconds)
	out <- prometheus.MustNewConstMetric(setBacks, prometheus.CounterValue, float64(stats.SetBacks))
	out <- prometheus.MustNewConstMetric(lostWrites, prometheus.CounterValue, float64(stats.LostWrites))
}

// sizeNow returns a recent size of the database, and whether it is known.
func (f *figures) sizeNow() (changelog.Size, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if begun := time.Now(); begun.After(f.until) {
		ctx, cancel := context.WithTimeout(context.Background(), sizeTimeout)
		defer cancel()
		size, err := f.s.store.Source().Size(ctx)
		f.size, f.known = size, err == nil
		f.until = time.Now().Add(max(sizeFresh, sizeShare*time.Since(begun)))
	}
	return f.size, f.known
}
