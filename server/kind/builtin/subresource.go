package builtin

import (
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/plinth-io/plinth/server/kind"
)

// subresources makes the map that a Kind wants.
func subresources(list ...*kind.Subresource) map[string]*kind.Subresource {
	m := make(map[string]*kind.Subresource, len(list))
	for _, s := range list {
		m[s.Name] = s
	}
	return m
}

// part is a subresource whose body is the whole object; its strategy keeps writes to the
// part that the subresource is for.
func part(name string, update rest.RESTUpdateStrategy) *kind.Subresource {
	return &kind.Subresource{Name: name, Verbs: []string{"get", "patch", "update"}, Update: update}
}

// untabled makes a subresource that upstream has no columns for.
func untabled(s *kind.Subresource) *kind.Subresource {
	s.NoTable = true
	return s
}

func status(update rest.RESTUpdateStrategy) *kind.Subresource { return part("status", update) }
