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

// checkPast returns ErrCompacted for a past revision that the caller may not read, as if it were compacted, so that
// clients list anew. A revision from before the present namespace was created may have objects of an earlier namespace
// of the same name: only callers who may do the same in all namespaces read it. A revision from before the present
// definition was created has objects of another schema: nobody reads it.
func (q *request) checkPast(ctx context.Context, revision int64) error {
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
