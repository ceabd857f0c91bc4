package sqlstore

import (
	"context"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Moved is CheckMoved for the log of the Store.
func (s *Store) Moved(ctx context.Context) error { return changelog.CheckMoved(ctx, s.log) }
