package server

import (
	"context"

	"github.com/plinth-io/plinth/server/rest"
	"github.com/plinth-io/plinth/sqlstore"
)

// Pin remembers the state of all objects for Rewind, until it is released.
func (s *Server) Pin(ctx context.Context) (*sqlstore.Pin, error) { return s.store.Pin(ctx) }

// Rewind gives all objects the state that they had at a pin, past admission and validation. To clients
// these are changes as others are. What follows from objects, such as the resources of a
// CustomResourceDefinition, comes a moment later, as always.
func (s *Server) Rewind(ctx context.Context, p *sqlstore.Pin) error {
	own := rest.Own
	own.Verb = "rewind"
	_, err := s.store.Rewind(sqlstore.WithOrigin(ctx, &sqlstore.Origin{Author: own}), p)
	return err
}
