package backups

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/plinth-io/plinth/sqlstore/backup"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// Path is where a server gives its backup to whoever may read the path.
const Path = "/plinth/backup"

// Config says what to back up.
type Config struct {
	Source  changelog.Source
	Program string // version of this plinth
	// Revision returns the newest revision of the server. While it rises, a backup makes way.
	Revision func() int64
	Logger   *slog.Logger
}

// Backups makes them one at a time.
type Backups struct {
	config  Config
	idle    chan struct{} // has a token while no backup is made
	figures figures
	listed  listed
}

// New returns Backups that has made none.
func New(c Config) *Backups {
	b := &Backups{config: c, idle: make(chan struct{}, 1), figures: newFigures()}
	b.idle <- struct{}{}
	return b
}

// take writes a backup. The caller has the token of idle.
func (b *Backups) take(ctx context.Context, to io.Writer, history bool) (backup.Taken, error) {
	return backup.Take(ctx, b.config.Source, to, backup.Options{
		Program: b.config.Program, History: history, Pace: NewPace(ctx, b.config.Revision),
	})
}

const (
	// share is which part of its time work takes while others write: one of so many.
	share = 12
	// mostPause bounds one pause.
	mostPause = 500 * time.Millisecond
)

// NewPace returns a function that is called now and then by work which is in no hurry. If somebody has
// written since the last call it sleeps for many times as long as the work took.
func NewPace(ctx context.Context, revision func() int64) func() {
	last, begun := revision(), time.Now()
	return func() {
		worked, now := time.Since(begun), revision()
		if now != last {
			_ = sleep.For(ctx, min((share-1)*worked, mostPause))
		}
		last, begun = now, time.Now()
	}
}
