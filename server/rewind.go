package server

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plinth-io/plinth/server/rest"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Pin remembers the state of all objects for Rewind, until it is released.
func (s *Server) Pin(ctx context.Context) (*sqlstore.Pin, error) { return s.store.Pin(ctx) }

// Rewind gives all objects the state that they had at a pin, past admission and validation. To clients
// these are changes as others are. What follows from objects, such as the resources of a
// CustomResourceDefinition, comes a moment later, as always.
func (s *Server) Rewind(ctx context.Context, p *sqlstore.Pin) error {
	return s.rewind(ctx, p, rest.Own)
}

// rewind is Rewind by somebody.
func (s *Server) rewind(ctx context.Context, p *sqlstore.Pin, by changelog.Author) error {
	by.Verb = "rewind"
	_, err := s.store.Rewind(sqlstore.WithOrigin(ctx, &changelog.Origin{Author: by}), p)
	if errors.Is(err, changelog.ErrCompacted) {
		err = apierrors.NewResourceExpired("the versions that the snapshot needs are gone, because an object was forgotten, another server on the database compacted them, or the database was exchanged; take another snapshot")
	}
	return err
}
