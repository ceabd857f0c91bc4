package server

import (
	"context"
	"path/filepath"
	"time"

	"github.com/plinth-io/plinth/server/backups"
	"github.com/plinth-io/plinth/server/scrubs"
	"github.com/plinth-io/plinth/server/turns"
)

// makeBackups makes what backs the database up, and what searches it for damage.
func (s *Server) makeBackups() {
	source := s.store.Source()
	s.backups = backups.New(backups.Config{Source: source, Program: BuildInfo().Version, Revision: s.store.Revision, Log: s.config.Log})
	look := scrubs.Scrubber{
		Source: source, Log: s.config.Log, Memory: s.store.DigestAt,
		Pace: func(ctx context.Context) func() { return backups.NewPace(ctx, s.store.Revision) },
	}
	if s.config.Encryption.ConfigFile != "" {
		look.Transformer = s.encryption
	}
	s.scrubber = scrubs.New(look)
}

// startBackups starts what goes on at intervals.
func (s *Server) startBackups() {
	files := backups.Interval{Every: s.config.BackupInterval, Dir: absolute(s.config.backupDir()), Keep: s.config.BackupKeep}
	if files.Every > 0 {
		s.backups.Remember(files.Dir)
	}
	s.everyInterval(&turns.Turn{Name: "plinth-backup", Every: files.Every, Done: func() bool { return s.backups.Made(files) }},
		func(ctx context.Context) error { return s.backups.WriteTo(ctx, files) })
	s.everyInterval(&turns.Turn{Name: "plinth-scrub", Every: s.config.ScrubInterval}, s.scrubber.Look)
}

// everyInterval does some work whenever it is this server's turn; never if the interval is 0.
func (s *Server) everyInterval(turn *turns.Turn, work func(context.Context) error) {
	if turn.Every == 0 {
		return
	}
	turn.Identity, turn.Client, turn.Log = newIdentity(), s.InProcess(nil), s.config.Log
	s.jobs.Go(func() {
		if err := turn.Run(s.jobsCtx, work); err != nil {
			s.config.Log.Error("some work is not done at intervals", "lease", turn.Name, "err", err)
		}
	})
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
