package transfer

import (
	"context"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

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
