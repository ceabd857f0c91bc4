package server

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server/admission"
	"github.com/plinth-io/plinth/server/alarms"
	"github.com/plinth-io/plinth/server/backups"
	"github.com/plinth-io/plinth/server/deciding"
	"github.com/plinth-io/plinth/server/guard"
	"github.com/plinth-io/plinth/server/metrics"
	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/server/status"
)

// condition is how the server is, as alarms, metrics and plinth status tell.
type condition struct {
	config       *Config
	database     *database
	maintenance  *maintenance
	certificates *certificates
	checks       *checks

	self   func() status.Replica
	size   *metrics.Database
	alarms *alarms.Watch
}

// newCondition makes what looks at the condition of a server. self is asked when status is served; event records
// an alarm.
func newCondition(s *Server, self func() status.Replica, event func(context.Context, alarms.Change) error) *condition {
	c := &condition{
		config: &s.config, database: &s.database, maintenance: &s.maintenance, certificates: &s.certificates, checks: s.checks,
		self: self, size: metrics.NewDatabase(s.store.Source().Size),
	}
	var unreadable deciding.Teller
	facts := func() alarms.Facts {
		unreadable.Tell(c.config.Log, deciding.Unreadable(c.database.store))
		return c.facts()
	}
	c.alarms = alarms.New(alarms.Config{Facts: facts, Logger: c.config.Log, Tell: func(ctx context.Context, change alarms.Change) error {
		if err := c.database.store.Healthy(); err != nil {
			return err // an event could not be written
		}
		return event(admission.Unasked(ctx), change) // what an alarm is about may refuse its event, too
	}})
	return c
}

// facts are for alarms. They are in memory, but for the space on disks.
func (c *condition) facts() alarms.Facts {
	stats := c.database.store.Stats()
	success, failure := c.maintenance.backups.Last()
	_, damage, _ := c.maintenance.scrubber.Last()
	unreadable := ""
	if err := c.checks.deciding(); err != nil {
		unreadable = err.Error()
	}
	return alarms.Facts{
		Disks: c.disks(), CompactionBehind: c.database.store.CompactionBehind(), Lag: c.database.store.Lag(), Lost: c.lost(), Certificates: c.certificates.ends(),
		Backups: alarms.Backups{Every: c.config.BackupInterval, Success: success, Failure: failure}, Damage: max(damage, c.database.store.Damaged()), Unreadable: unreadable, Files: c.checks.refusedFiles(),
		Components: c.checks.componentsDown(),
		Counts: alarms.Counts{
			Transactions: stats.Batches, Changes: stats.Changes, HeadReads: stats.HeadReads,
			TransactionTime: seconds(stats.AppendSeconds), HeadTime: seconds(stats.HeadSeconds),
		},
	}
}

// lost is the outage of the database that goes on.
func (c *condition) lost() alarms.Loss {
	if past := c.database.store.Outages(); len(past) > 0 && past[len(past)-1].Until.IsZero() {
		return alarms.Loss{Since: past[len(past)-1].Since, Err: past[len(past)-1].Err}
	}
	return alarms.Loss{}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// disks are those of the database, the data directory and the backups.
func (c *condition) disks() []alarms.Disk {
	free, size := c.database.store.Room()
	disks := []alarms.Disk{{Of: "the database", Free: free, Size: size}}
	add := func(of, dir string) {
		free, size := roomAt(dir)
		disks = append(disks, alarms.Disk{Of: of, Free: free, Size: size})
	}
	if c.config.DataDir != "" {
		add("the data directory", c.config.DataDir)
	}
	if c.config.BackupInterval > 0 {
		add("backups", c.config.backupDir())
	}
	return disks
}

// roomAt returns the free and all bytes of the file system of a directory, -1 if they are not known.
func roomAt(dir string) (free, size int64) {
	var at unix.Statfs_t
	if err := unix.Statfs(dir, &at); err != nil {
		return -1, -1
	}
	const most = 1 << 62 // file systems on a network may say that they have no end
	bytes := func(blocks uint64) int64 {
		if block := uint64(max(at.Bsize, 1)); blocks < most/block {
			return int64(blocks * block)
		}
		return most
	}
	return bytes(uint64(at.Bavail)), bytes(at.Blocks)
}

// lags are for metrics.
func (c *condition) lags() metrics.Lags {
	return metrics.Lags{
		Reads: c.database.store.Lag().Seconds(), Compaction: c.database.store.CompactionBehind().Seconds(), Watcher: c.database.store.Slowest().For.Seconds(),
	}
}

// serveStatus answers plinth status.
func (c *condition) serveStatus(x *guard.Call) error {
	if x.Request().Method != http.MethodGet {
		return response.MethodNotAllowed()
	}
	responsewriters.WriteRawJSON(http.StatusOK, c.statusSource().Gather(), x.Response())
	return nil
}

func (c *condition) statusSource() *status.Source {
	self := c.self()
	return &status.Source{
		Store: c.database.store, Size: c.size, Alarms: c.alarms, Faults: c.maintenance.faults, Reason: c.database.reason, Ends: c.certificates.ends,
		Self: self, Started: self.Since, Database: dialects.Describe(c.config.DSN),
		Backups: func() *backups.Listing { return c.maintenance.listed(c.config) },
	}
}
