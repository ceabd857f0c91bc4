// Package history serves the API group history.plinth.io: the changes in the log, with their authors, and the
// versions of objects.
//
// It stores nothing: the objects of the group are made from rows of the log at each request. A caller sees a
// change if the caller may get the object, by the rights of now.
package history

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	v1 "github.com/plinth-io/plinth/server/history/v1"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore"
)

// Options of the Kinds.
type Options struct {
	Store *sqlstore.Store
	// Kinds has the kinds whose objects are in the Store.
	Kinds *kind.Registry
	// Authorizer decides what a caller may get and delete.
	Authorizer authorizer.Authorizer
}

// Kinds returns the resources of the group.
func Kinds(o Options) []*kind.Kind {
	changes := resource(&changes{resources{Options: o, form: changeForm}}, "changes", changeForm)
	versions := resource(&versions{resources{Options: o, form: versionForm}}, "versions", versionForm)
	versions.Verbs = append([]string{"deletecollection"}, versions.Verbs...)
	return []*kind.Kind{changes, versions}
}

func resource(o kind.Follower, plural string, f *form) *kind.Kind {
	name, version := f.kind, v1.GroupVersion.Version
	return &kind.Kind{
		Group: v1.GroupName, Resource: plural, Singular: o.(interface{ GetSingularName() string }).GetSingularName(),
		Kind: name, ListKind: name + "List", Namespaced: true,
		Versions: []kind.Version{{Name: version}},
		Stored:   kind.Stored{Group: v1.GroupName, Resource: plural, Version: version},
		Verbs:    []string{"get", "list", "watch"},
		Codec:    f, Attrs: attributes, FieldLabel: fieldLabel, Table: columns{},
		Observed: o, Unaudited: true,
	}
}

// attributes returns nothing to compare, because the resources evaluate selectors themselves.
func attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, nil, err
	}
	return nil, fields.Set{"metadata.name": m.GetName(), "metadata.namespace": m.GetNamespace()}, nil
}
