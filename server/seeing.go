package server

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server/admission"
	"github.com/plinth-io/plinth/server/alarms"
	"github.com/plinth-io/plinth/server/deciding"
	"github.com/plinth-io/plinth/server/guard"
	"github.com/plinth-io/plinth/server/metrics"
	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/server/status"
)

// makeAlarms makes what looks at the condition of the server.
func (s *Server) makeAlarms() {
	s.size = metrics.NewDatabase(s.store.Size)
	var unreadable deciding.Teller
	facts := func() alarms.Facts {
		unreadable.Tell(s.config.Log, deciding.Unreadable(s.store))
		return s.facts()
	}
	s.alarms = alarms.New(alarms.Config{Facts: facts, Log: s.config.Log, Tell: func(ctx context.Context, c alarms.Change) error {
		if err := s.store.Healthy(); err != nil {
			return err // an event could not be written
		}
		return s.cluster.Tell(admission.Unasked(ctx), c) // what an alarm is about may refuse its event, too
	}})
}

// facts are for alarms. They are in memory, but for the space on disks.
func (s *Server) facts() alarms.Facts {
	stats := s.store.Stats()
	success, failure := s.backups.Last()
	_, damage, _ := s.scrubber.Last()
	unreadable := ""
	if err := s.deciding(); err != nil {
		unreadable = err.Error()
	}
	return alarms.Facts{
		Disks: s.disks(), CompactionBehind: s.store.CompactionBehind(), Lag: s.store.Lag(), Lost: s.lost(), Certificates: s.certificateEnds(),
		Backups: alarms.Backups{Every: s.config.BackupInterval, Success: success, Failure: failure}, Damage: max(damage, s.store.Damaged()), Unreadable: unreadable, Files: s.refusedFiles(),
		Counts: alarms.Counts{
			Transactions: stats.Batches, Changes: stats.Changes, HeadReads: stats.HeadReads,
			TransactionTime: seconds(stats.AppendSeconds), HeadTime: seconds(stats.HeadSeconds),
		},
	}
}

// lost is the outage of the database that goes on.
func (s *Server) lost() alarms.Loss {
	if past := s.store.Outages(); len(past) > 0 && past[len(past)-1].Until.IsZero() {
		return alarms.Loss{Since: past[len(past)-1].Since, Err: past[len(past)-1].Err}
	}
	return alarms.Loss{}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// disks are those of the database, the data directory and the backups.
func (s *Server) disks() []alarms.Disk {
	free, size := s.store.Room()
	disks := []alarms.Disk{{Of: "the database", Free: free, Size: size}}
	add := func(of, dir string) {
		free, size := roomAt(dir)
		disks = append(disks, alarms.Disk{Of: of, Free: free, Size: size})
	}
	if s.config.DataDir != "" {
		add("the data directory", s.config.DataDir)
	}
	if s.config.BackupInterval > 0 {
		add("backups", s.config.backupDir())
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
func (s *Server) lags() metrics.Lags {
	return metrics.Lags{
		Reads: s.store.Lag().Seconds(), Compaction: s.store.CompactionBehind().Seconds(), Watcher: s.store.Slowest().For.Seconds(),
	}
}

// serveStatus answers plinth status.
func (s *Server) serveStatus(x *guard.Call) error {
	if x.Request().Method != http.MethodGet {
		return response.MethodNotAllowed()
	}
	responsewriters.WriteRawJSON(http.StatusOK, s.statusSource().Gather(), x.Response())
	return nil
}

func (s *Server) statusSource() *status.Source {
	host, _ := os.Hostname()
	self := status.Replica{Name: cmp.Or(s.identity, host), Version: BuildInfo().Version, Since: s.begun.UTC()}
	if ip := s.address().IP; ip != nil {
		self.Address = ip.String()
	}
	return &status.Source{
		Store: s.store, Size: s.size, Alarms: s.alarms, Faults: s.faults, Reason: s.reason, Ends: s.certificateEnds,
		Self: self, Started: s.begun, Database: dialects.Describe(s.config.DSN),
	}
}

// faults are those that the store does not know.
func (s *Server) faults() (all []status.Fault) {
	if _, failure := s.backups.Last(); !failure.IsZero() {
		all = append(all, status.Fault{Kind: "backup", Since: failure.UTC(), Until: failure.UTC(), Text: "a backup failed; the log says why"})
	}
	if _, _, failure := s.scrubber.Last(); !failure.IsZero() {
		all = append(all, status.Fault{Kind: "scrub", Since: failure.UTC(), Until: failure.UTC(), Text: "the database could not be searched for damage; the log says why"})
	}
	return all
}
