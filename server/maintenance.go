package server

import (
	"context"
	"path/filepath"
	"time"

	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/backups"
	"github.com/plinth-io/plinth/server/encryption"
	"github.com/plinth-io/plinth/server/scrubs"
	"github.com/plinth-io/plinth/server/status"
	"github.com/plinth-io/plinth/server/turns"
	"github.com/plinth-io/plinth/sqlstore"
)

// maintenance is what a running server does for its database at intervals, or when it is asked to.
type maintenance struct {
	backups  *backups.Backups
	scrubber *scrubs.Scrubber
}

// newMaintenance makes what backs the store up, and what searches it for damage. It starts nothing.
func newMaintenance(c *Config, store *sqlstore.Store, providers *encryption.Providers) maintenance {
	source := store.Source()
	scrubber := scrubs.Scrubber{
		Source: source, Logger: c.Log, Memory: store.DigestAt,
		Pace: func(ctx context.Context) func() { return backups.NewPace(ctx, store.Revision) },
	}
	if c.Encryption.ConfigFile != "" {
		scrubber.Transformer = providers
	}
	return maintenance{
		backups:  backups.New(backups.Config{Source: source, Program: BuildInfo().Version, Revision: store.Revision, Logger: c.Log}),
		scrubber: scrubs.New(scrubber),
	}
}

// start starts what is done at intervals.
func (m *maintenance) start(c *Config, b *background, client *clientrest.Config) {
	files := backups.Interval{Every: c.BackupInterval, Dir: absolute(c.backupDir()), Keep: c.BackupKeep}
	if files.Every > 0 {
		m.backups.Remember(files.Dir)
	}
	b.goTurn(client, &turns.Turn{Name: "plinth-backup", Every: files.Every, Done: func() bool { return m.backups.Made(files) }},
		func(ctx context.Context) error { return m.backups.WriteTo(ctx, files) })
	b.goTurn(client, &turns.Turn{Name: "plinth-scrub", Every: c.ScrubInterval}, m.scrubber.Look)
}

// faults are those of the last backup and of the last search.
func (m *maintenance) faults() (all []status.Fault) {
	if _, failure := m.backups.Last(); !failure.IsZero() {
		all = append(all, status.Fault{Kind: "backup", Since: failure.UTC(), Until: failure.UTC(), Text: "a backup failed; the log says why"})
	}
	if _, _, failure := m.scrubber.Last(); !failure.IsZero() {
		all = append(all, status.Fault{Kind: "scrub", Since: failure.UTC(), Until: failure.UTC(), Text: "the database could not be searched for damage; the log says why"})
	}
	return all
}

// listed are the files that are made at intervals; nil: none are.
func (m *maintenance) listed(c *Config) *backups.Listing {
	if c.BackupInterval == 0 {
		return nil
	}
	l := m.backups.List(absolute(c.backupDir()))
	return &l
}

func (c *Config) backupDir() string {
	if c.BackupDir == "" && c.DataDir != "" {
		return filepath.Join(c.DataDir, "backups")
	}
	return c.BackupDir
}

// leastScrub is the shortest time between two searches for damage, of which each writes where it is.
const leastScrub = 100 * time.Millisecond

// checkBackups finds what is wrong with the settings of backups.
func (c *Config) checkBackups() error {
	switch {
	case c.BackupInterval < 0:
		return fieldError("%v %v is negative: write a duration such as 24h, or 0 for no backups", field("BackupInterval"), c.BackupInterval)
	case c.ScrubInterval < 0:
		return fieldError("%v %v is negative: write a duration such as 24h, or 0 for no search", field("ScrubInterval"), c.ScrubInterval)
	case c.ScrubInterval > 0 && c.ScrubInterval < leastScrub:
		return fieldError("%v %v: write at least %v", field("ScrubInterval"), c.ScrubInterval, leastScrub)
	case c.BackupKeep < 0:
		return fieldError("%v %d is negative: write how many backups are kept, or 0 for all", field("BackupKeep"), c.BackupKeep)
	case c.BackupInterval > 0 && c.backupDir() == "":
		return fieldError("%v needs %v: write the directory of the backups", field("BackupInterval"), field("BackupDir"))
	case c.BackupInterval == 0 && c.BackupDir != "":
		return fieldError("%v has no effect without %v: write how often a backup is made, such as 24h", field("BackupDir"), field("BackupInterval"))
	}
	return nil
}
