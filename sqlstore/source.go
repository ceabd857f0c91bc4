package sqlstore

import (
	"context"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Source returns the log for those who read it as it is at one moment. Its Close does nothing: the Store
// closes the log.
func (s *Store) Source() changelog.Source { return source{s.log} }

type source struct{ changelog.Log }

func (source) Close() error { return nil }

// Room is Log.Room: what is free where the database is.
func (s *Store) Room() (free, size int64) { return s.log.Room() }

// Condition is Log.Condition: what is known to be wrong without asking the database.
func (s *Store) Condition() error { return s.log.Condition() }

// Moved is CheckMoved for the log of the Store.
func (s *Store) Moved(ctx context.Context) error { return changelog.CheckMoved(ctx, s.log) }
