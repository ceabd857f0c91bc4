package sqlstore

import (
	"context"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Size returns the space that the log takes; see Log.Size.
func (s *Store) Size(ctx context.Context) (changelog.Size, error) { return s.log.Size(ctx) }
