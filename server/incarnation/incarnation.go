// Package incarnation tells since when a namespace or a definition is the one that is there now. One that was
// deleted and made again shares its name with the old one and nothing else: other people own it, and objects
// of the old one are none of theirs.
//
// It owns where these two are in a Store. It must not know who asks, nor what is done with the answer.
package incarnation

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// None is since when something is there that is not there: no revision belongs to it.
const None = changelog.Forever

var (
	namespaces  = object.Prefix("", "namespaces")
	definitions = object.Prefix(apiextensionsv1.GroupName, "customresourcedefinitions")
)

// OfNamespace returns the revision that created the namespace of that name which is there now; None if
// none is.
func OfNamespace(s *sqlstore.Store, name string) int64 {
	return since(s, object.Key(namespaces, "", name))
}

// OfDefinition returns the revision that created the definition of a custom resource which is there now;
// None if none is.
func OfDefinition(s *sqlstore.Store, stored schema.GroupResource) int64 {
	return since(s, object.Key(definitions, "", stored.String()))
}

func since(s *sqlstore.Store, key string) int64 {
	if created, _ := s.Incarnation(key); created != 0 {
		return created
	}
	return None
}

// LastOfNamespace is OfNamespace, or of a namespace that is not there the revision that deleted it; 0 if
// that is not known any more, because it is below the floor or never was.
func LastOfNamespace(ctx context.Context, s *sqlstore.Store, name string) (int64, error) {
	if since := OfNamespace(s, name); since != None {
		return since, nil
	}
	key := object.Key(namespaces, "", name)
	from, to := key, key+"\x00"
	rows, err := s.History(ctx, changelog.HistoryQuery{From: from, To: to, Through: changelog.Forever, Limit: 1})
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return rows[0].Revision, nil
}
