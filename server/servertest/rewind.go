package servertest

import (
	"context"

	"github.com/plinth-io/plinth/sqlstore"
)

// Snapshot is the state of all objects at one moment.
type Snapshot struct{ pin *sqlstore.Pin }

// Snapshot remembers the state of all objects, for Rewind. It is forgotten when the server ends.
func (s *Server) Snapshot() (*Snapshot, error) {
	pin, err := s.server.Pin(context.Background())
	if err != nil {
		return nil, err
	}
	return &Snapshot{pin}, nil
}

// Rewind gives all objects the state of a snapshot again, with their uids and new resourceVersions, so
// that the next test finds what the first one found. It takes some milliseconds, and asks neither
// finalizers nor admission. Watches see what changes. Call it when nobody else writes; controllers that
// go on may change objects again. The resources of CustomResourceDefinitions follow a moment later.
func (s *Server) Rewind(snapshot *Snapshot) error {
	return s.server.Rewind(context.Background(), snapshot.pin)
}
