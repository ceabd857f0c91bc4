// Package status says how a server and its database are: GET /plinth/status, which plinth status shows. It
// owns the form of the answer and gathers it when it is asked for, from memory; only the size of the
// database is asked for there, and the folder of the backups is read, each at most every 15 seconds.
package status

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/plinth-io/plinth/server/alarms"
	"github.com/plinth-io/plinth/server/backups"
	"github.com/plinth-io/plinth/server/cluster"
	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/server/metrics"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// Status is the answer. Durations are in seconds.
type Status struct {
	Time         time.Time            `json:"time"`
	Started      time.Time            `json:"started"`
	Alarms       []Alarm              `json:"alarms"`
	Database     Database             `json:"database"`
	Replicas     []Replica            `json:"replicas"`  // this one is the first
	Resources    []Resource           `json:"resources"` // the largest first
	Watches      Watches              `json:"watches"`
	Writes       Writes               `json:"writes"`
	Reads        Reads                `json:"reads"`
	Faults       []Fault              `json:"faults"` // the newest first
	Certificates map[string]time.Time `json:"certificates,omitempty"`
	Backups      *Backups             `json:"backups,omitempty"` // nil: this server makes none at intervals
}

// Alarm is one that is on.
type Alarm struct {
	Name   string    `json:"name"`
	Since  time.Time `json:"since"`
	Text   string    `json:"text"`
	Detail string    `json:"detail,omitempty"`
}

// Database is what is known of it.
type Database struct {
	Name      string `json:"name"` // without its password
	ClusterID string `json:"clusterID,omitempty"`
	Usable    bool   `json:"usable"`
	Objects   int64  `json:"objects"`
	Revision  int64  `json:"revision"`
	Floor     int64  `json:"floor"`

	CompactionBehind float64 `json:"compactionBehindSeconds"`

	*Size // nil while the database cannot be asked
}

// Size is what the database takes.
type Size struct {
	Rows int64 `json:"rows"`
	Dead int64 `json:"deadRows"` // old versions and tombstones, which compaction deletes when the history has passed
	Kept int64 `json:"keptRows"` // by --keep
	// KeptBytes are those of the keys and values of these rows; nil: they are not added up, because nothing bounds them.
	KeptBytes *int64 `json:"keptBytes,omitempty"`
	KeptBound int64  `json:"keptBytesBound,omitempty"` // by --keep-size
	Bytes     int64  `json:"bytes"`
	Free      int64  `json:"freeBytes,omitempty"`
}

// Replica is a server of the database.
type Replica struct {
	Name     string    `json:"name"`
	Address  string    `json:"address,omitempty"`
	Version  string    `json:"version,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	Seen     time.Time `json:"seen"` // when it told of itself
	Revision int64     `json:"revision,omitempty"`
	Lag      float64   `json:"lagSeconds"`
	Asked    bool      `json:"asked,omitempty"` // it is the one that answers
}

// Resource is what the objects of a resource take.
type Resource struct {
	Name    string `json:"name"`
	Objects int    `json:"objects"`
	Bytes   int64  `json:"bytes"` // of keys and values
}

// Watches are the open ones, with those of the server itself.
type Watches struct {
	Open    int64    `json:"open"`
	Slowest *Slowest `json:"slowest,omitempty"` // nil: no watch is behind
}

// Slowest is the watch that is behind the others.
type Slowest struct {
	Prefix  string  `json:"prefix"` // of the keys that it watches
	Behind  int64   `json:"behindRevisions"`
	For     float64 `json:"behindSeconds"`
	FromLog bool    `json:"fromLog,omitempty"` // it is so far behind that it reads the database
}

// Writes are the transactions of this server: those of the last minute, and all.
type Writes struct {
	PerSecond float64 `json:"perSecond"`
	Batch     float64 `json:"changesPerTransaction"`
	Seconds   float64 `json:"secondsPerTransaction"`
	P99       float64 `json:"p99Seconds"` // of all since the start, rounded up; 0: there were none

	Transactions int64 `json:"transactionsTotal"`
	Changes      int64 `json:"changesTotal"`
	Conflicts    int64 `json:"conflictsTotal"`
}

// Reads are the queries for the newest revision, which reads that must be the most recent share.
type Reads struct {
	PerSecond float64 `json:"headsPerSecond"`
	Seconds   float64 `json:"secondsPerHead"`
	Total     int64   `json:"headsTotal"`
}

// Fault is something that went wrong and is over, unless Until is zero.
type Fault struct {
	Kind  string    `json:"kind"` // outage, setBack, backup, scrub
	Since time.Time `json:"since"`
	Until time.Time `json:"until,omitzero"`
	Text  string    `json:"text"`
}

// Backups are the files of the cluster that are in the folder in which this server makes them at intervals.
type Backups struct {
	Count int          `json:"count"`
	Files []BackupFile `json:"files"`           // the newest first, at most 50
	Read  time.Time    `json:"read,omitzero"`   // when the folder was read
	Fault string       `json:"fault,omitempty"` // why the folder could not be read since
}

// BackupFile is one of them.
type BackupFile struct {
	Name     string    `json:"name"`
	Time     time.Time `json:"time"` // when it was taken
	Revision int64     `json:"revision"`
	Bytes    int64     `json:"bytes"`
}

// Source is what the answer is gathered from.
type Source struct {
	Store   *sqlstore.Store
	Size    *metrics.Database
	Alarms  *alarms.Watch
	Faults  func() []Fault     // those that the Store does not know
	Reason  func(error) string // an error of the database in words that may be shown
	Ends    func() map[string]time.Time
	Backups func() *backups.Listing // nil: none are made at intervals
	Self    Replica
	Started time.Time

	Database string // without its password
}

// Gather returns the status of this moment.
func (s *Source) Gather() *Status {
	now := time.Now()
	stats := s.Store.Stats()
	all := &Status{
		Time: now.UTC(), Started: s.Started.UTC(),
		Alarms: s.alarms(), Database: s.database(&stats), Replicas: s.replicas(now), Resources: s.resources(),
		Watches: s.watches(&stats), Writes: s.writes(&stats), Reads: s.reads(&stats), Faults: s.faults(), Certificates: s.Ends(),
		Backups: backupsOf(s.Backups()),
	}
	return all
}

func (s *Source) alarms() []Alarm {
	on := []Alarm{}
	for _, a := range s.Alarms.Active() {
		on = append(on, Alarm{Name: a.Name, Since: a.Since.UTC(), Text: a.Text, Detail: a.Detail})
	}
	return on
}

func (s *Source) database(stats *sqlstore.Stats) Database {
	d := Database{
		Name: s.Database, ClusterID: s.Store.Source().ClusterID(), Usable: stats.Usable,
		Revision: stats.Revision, Floor: stats.Floor, CompactionBehind: s.Store.CompactionBehind().Seconds(),
	}
	var current int64
	for resource, n := range stats.Entries {
		current += int64(n)
		if group, _ := object.SplitPrefix(resource); group != object.InternalGroup {
			d.Objects += int64(n)
		}
	}
	if size, known := s.Size.Now(); known {
		d.Size = &Size{Rows: size.Rows, Dead: max(0, size.Rows-current), Kept: size.Past, KeptBound: stats.KeptBound, Bytes: size.Bytes, Free: max(0, size.Free)}
		if size.PastData >= 0 {
			d.Size.KeptBytes = &size.PastData
		}
	}
	return d
}

// replicas are this server, and the others that have Leases.
func (s *Source) replicas(now time.Time) []Replica {
	self := s.Self
	self.Seen, self.Revision, self.Lag, self.Asked = now.UTC(), s.Store.Revision(), s.Store.Lag().Seconds(), true
	all := []Replica{self}
	lister.Each(s.Store, leases, leases+"kube-system/", func(lease *coordinationv1.Lease) {
		if r, ok := cluster.ReadReplica(lease); ok && r.Name != self.Name {
			all = append(all, Replica{
				Name: r.Name, Address: r.Address, Version: r.Version, Since: r.Since.UTC(), Seen: r.Seen.UTC(), Revision: r.Revision, Lag: r.Lag.Seconds(),
			})
		}
	})
	slices.SortFunc(all[1:], func(a, b Replica) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

var leases = object.Prefix("coordination.k8s.io", "leases")

func (s *Source) resources() []Resource {
	all := []Resource{}
	for prefix, u := range s.Store.Usage() {
		all = append(all, Resource{Name: metrics.ResourceLabel(prefix), Objects: u.Objects, Bytes: u.Bytes})
	}
	slices.SortFunc(all, func(a, b Resource) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func (s *Source) watches(stats *sqlstore.Stats) Watches {
	w := Watches{Open: stats.Watchers}
	if slowest := s.Store.Slowest(); slowest.For > 0 {
		w.Slowest = &Slowest{Prefix: slowest.Prefix, Behind: slowest.Behind, For: slowest.For.Seconds(), FromLog: slowest.FromLog}
	}
	return w
}

func (s *Source) writes(stats *sqlstore.Stats) Writes {
	r := s.Alarms.Recent()
	w := Writes{
		PerSecond: r.PerSecond(r.Changes), Seconds: r.Transaction().Seconds(), P99: percentile(stats, 99),
		Transactions: stats.Batches, Changes: stats.Changes, Conflicts: stats.Conflicts,
	}
	if r.Transactions > 0 {
		w.Batch = float64(r.Changes) / float64(r.Transactions)
	}
	return w
}

// percentile returns the first of AppendBounds that so many of a hundred transactions kept to; twice the
// last one stands for more.
func percentile(stats *sqlstore.Stats, percent int64) float64 {
	var all, below int64
	for _, n := range stats.Appends {
		all += n
	}
	if all == 0 {
		return 0
	}
	for i, bound := range sqlstore.AppendBounds {
		if below += stats.Appends[i]; 100*below >= percent*all {
			return bound
		}
	}
	return 2 * sqlstore.AppendBounds[len(sqlstore.AppendBounds)-1]
}

func (s *Source) reads(stats *sqlstore.Stats) Reads {
	r := s.Alarms.Recent()
	return Reads{PerSecond: r.PerSecond(r.HeadReads), Seconds: r.Head().Seconds(), Total: stats.HeadReads}
}

func (s *Source) faults() []Fault {
	all := s.Faults()
	for _, o := range s.Store.Outages() {
		all = append(all, Fault{Kind: "outage", Since: o.Since.UTC(), Until: utc(o.Until), Text: s.Reason(o.Err)})
	}
	if b := s.Store.LastSetBack(); b != nil {
		all = append(all, Fault{Kind: "setBack", Since: b.At.UTC(), Until: b.At.UTC(), Text: setBackText(b)})
	}
	slices.SortFunc(all, func(a, b Fault) int { return b.Since.Compare(a.Since) })
	if all == nil {
		all = []Fault{}
	}
	return all
}

func setBackText(b *sqlstore.SetBack) string {
	return fmt.Sprintf("%d acknowledged writes are gone; revisions go on above %d, and %d was the last one before; the log names what is gone", len(b.Lost), b.Above, b.Served)
}

// backupsOf is a folder of backups as the answer has it.
func backupsOf(l *backups.Listing) *Backups {
	if l == nil {
		return nil
	}
	b := &Backups{Count: l.Count, Files: []BackupFile{}, Read: utc(l.Read)}
	for _, f := range l.Files {
		b.Files = append(b.Files, BackupFile{Name: f.Name, Time: f.Time.UTC(), Revision: f.Revision, Bytes: f.Bytes})
	}
	if l.Err != nil {
		b.Fault = l.Err.Error()
	}
	return b
}

// utc leaves zero as it is.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}
