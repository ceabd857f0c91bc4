package alarms

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Facts are what alarms look at. All of them are in memory, but for the room on disks.
type Facts struct {
	Disks            []Disk
	CompactionBehind time.Duration        // see sqlstore.Store.CompactionBehind
	Lag              time.Duration        // see sqlstore.Store.Lag
	Lost             Loss                 // of the database; zero: it can be used
	Certificates     map[string]time.Time // when each ends, by its name
	Backups          Backups
	Damage           int      // pieces that the last search of the database has found, or objects that are damaged
	Files            []string // that have changed and cannot be used
	Components       string   // which components that run inside do not work, and why; empty: none
	Unreadable       string   // which objects that decide about requests cannot be read; empty: none

	Counts Counts
	Recent Recent // made of Counts by the Watch
}

// Disk is a file system.
type Disk struct {
	Of         string // what is on it
	Free, Size int64
}

// Loss says since when the database has refused reads or writes, and which.
type Loss struct {
	Since time.Time
	Err   error
}

// Backups are those that are made at intervals.
type Backups struct {
	Every            time.Duration // 0: there are none
	Success, Failure time.Time     // the last ones of this process
}

// Thresholds. The rules for Prometheus (docs/prometheus) have the same where they look at the same.
const (
	diskLeast       = 1 << 30 // free bytes that are enough on any disk
	diskShare       = 5       // a fifth is enough on a small one
	compactionLate  = 10 * time.Minute
	lagLong         = 10 * time.Second
	certificateSoon = 30 * 24 * time.Hour // plinth renews them 90 days before their end
	transactionSlow = 250 * time.Millisecond
	transactionsFew = 5 // in a minute: too few to judge by
	backupsMissed   = 2 // intervals after which a failure is somebody else's past
)

// Alarm is one condition.
type Alarm struct {
	Name string // in metrics
	// Reason is that of the event when the alarm begins; when it ends, Ended follows it.
	Reason string
	// Text says to everybody what is wrong, without names and figures.
	Text string
	// For is how long the condition has to hold.
	For time.Duration
	// check returns the figures of the condition if it holds, else nothing.
	check func(f *Facts, now time.Time) (detail string)
}

// All is the list of alarms.
var All = []Alarm{
	{"disk_low", "DiskLow", "a disk that plinth writes to is nearly full", 0, checkDisks},
	{"compaction_behind", "CompactionBehind", "old versions stay, because compaction fails or does not keep up", 0, checkCompaction},
	{"replica_lag", "ReplicaLag", "this server may not see what others have written, because the database does not answer it or refuses its writes", 0, checkLag},
	{"certificate_ends", "CertificateEnds", "a certificate ends soon and was not renewed", 0, checkCertificates},
	{"database_slow", "DatabaseSlow", "the database is slow", time.Minute, checkDatabase},
	{"backup_fails", "BackupFails", "the last backup failed", 0, checkBackups},
	{"damage", "DatabaseDamaged", "the database is damaged", 0, checkDamage},
	{"unreadable", "ObjectsUnreadable", "objects that decide about requests cannot be read, and what they may forbid is refused", 0, checkUnreadable},
	{"component_down", "ComponentDown", "a component that runs inside does not work", 0, checkComponents},
	{"config_refused", "ConfigRefused", "a configuration file has changed and cannot be used; the one before stays in force", 0, checkFiles},
}

func checkDisks(f *Facts, _ time.Time) string {
	var low []string
	for _, d := range f.Disks {
		if d.Size > 0 && d.Free < min(diskLeast, d.Size/diskShare) {
			low = append(low, fmt.Sprintf("%d MiB of %d MiB are free on the disk of %s", d.Free>>20, d.Size>>20, d.Of))
		}
	}
	return strings.Join(low, "; ")
}

func checkCompaction(f *Facts, _ time.Time) string {
	if f.CompactionBehind < compactionLate {
		return ""
	}
	return fmt.Sprintf("for %v rows have stayed that are older than the history", f.CompactionBehind.Round(time.Second))
}

func checkLag(f *Facts, _ time.Time) string {
	if f.Lag < lagLong {
		return ""
	}
	known := fmt.Sprintf("for %v it has not known whether it has all that others wrote", f.Lag.Round(time.Second))
	if f.Lost.Err != nil { // of writes alone, perhaps
		known += fmt.Sprintf("; the database cannot be used since %s: %v", f.Lost.Since.UTC().Format(time.RFC3339), f.Lost.Err)
	}
	return known
}

func checkCertificates(f *Facts, now time.Time) string {
	var ending []string
	for _, name := range slices.Sorted(maps.Keys(f.Certificates)) {
		if end := f.Certificates[name]; end.Sub(now) < certificateSoon {
			ending = append(ending, fmt.Sprintf("%s ends %s", name, end.UTC().Format(time.RFC3339)))
		}
	}
	return strings.Join(ending, "; ")
}

func checkDatabase(f *Facts, _ time.Time) string {
	r := f.Recent
	if r.Transactions < transactionsFew || r.Transaction() < transactionSlow {
		return ""
	}
	return fmt.Sprintf("a write transaction takes %v", r.Transaction().Round(time.Millisecond))
}

// checkBackups forgives a failure that is long past: another server may have made the backup since.
func checkBackups(f *Facts, now time.Time) string {
	b := f.Backups
	if b.Every <= 0 || !b.Failure.After(b.Success) || now.Sub(b.Failure) > backupsMissed*b.Every {
		return ""
	}
	return "at " + b.Failure.UTC().Format(time.RFC3339) + "; the log says why"
}

func checkFiles(f *Facts, _ time.Time) string { return strings.Join(f.Files, ", ") }

func checkComponents(f *Facts, _ time.Time) string { return f.Components }

func checkUnreadable(f *Facts, _ time.Time) string { return f.Unreadable }

func checkDamage(f *Facts, _ time.Time) string {
	if f.Damage == 0 {
		return ""
	}
	return fmt.Sprintf("%d pieces; the log names them", f.Damage)
}
