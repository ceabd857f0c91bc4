package sqlstore

import (
	"context"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Moved is CheckMoved for the log of the Store.
func (s *Store) Moved(ctx context.Context) error { return changelog.CheckMoved(ctx, s.log) }

// TakeBack lets a log go on that Move has stopped. It continues above what the log with its objects
// has served meanwhile, at least as long as that has drawn fewer than onlineGap revisions: clients
// that come back from there list anew, and so do those of the next copy.
func TakeBack(ctx context.Context, log changelog.Log) error {
	head, err := log.Head(ctx)
	if err == nil {
		err = log.Raise(ctx, head.Revision+2*onlineGap)
	}
	if err == nil {
		_, err = log.Move(ctx, "")
	}
	return err
}
