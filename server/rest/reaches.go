package rest

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/plinth-io/plinth/server/authz"
	"github.com/plinth-io/plinth/server/incarnation"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// reaches returns ErrCompacted for a revision in the past that is not the caller's to read, as if it were
// gone; clients list anew then. Objects in a namespace that was there before the present one of its name are
// for those who may do the same in all namespaces. Objects of a definition that was there before the present
// one are for nobody: they are of another schema.
func (q *request) reaches(ctx context.Context, revision int64) error {
	if q.kind.Custom != nil {
		since := incarnation.OfDefinition(q.api.store, schema.GroupResource{Group: q.kind.Stored.Group, Resource: q.kind.Stored.Resource})
		if since != incarnation.None && revision < since {
			return fmt.Errorf("%d is from before the definition of %s: %w", revision, q.groupResource(), changelog.ErrCompacted)
		}
	}
	if q.namespace == "" || q.api.o.Authorizer == nil {
		return nil
	}
	since, err := incarnation.LastOfNamespace(ctx, q.api.store, q.namespace)
	if err != nil || revision >= since {
		return err
	}
	everywhere := authz.Attributes(q.who, q.info)
	everywhere.Namespace = ""
	decision, _, err := q.api.o.Authorizer.Authorize(ctx, everywhere)
	if decision == authorizer.DecisionAllow {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%d is from before the namespace %s: %w", revision, q.namespace, changelog.ErrCompacted)
}
