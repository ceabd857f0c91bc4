package builtin

import (
	apirest "k8s.io/apiserver/pkg/registry/rest"

	"github.com/plinth-io/plinth/server/kind"
)

// subresources makes the map of a Kind; nil entries are left out.
func subresources(list ...*kind.Subresource) map[string]*kind.Subresource {
	m := make(map[string]*kind.Subresource, len(list))
	for _, s := range list {
		if s != nil {
			m[s.Name] = s
		}
	}
	return m
}

// part is a subresource whose body is the whole object. Its strategy limits a write to the
// subresource's part of the object.
func part(name string, update apirest.RESTUpdateStrategy) *kind.Subresource {
	return &kind.Subresource{Name: name, Verbs: []string{"get", "patch", "update"}, Update: update}
}

// untabled marks a subresource that has no columns upstream.
func untabled(s *kind.Subresource) *kind.Subresource {
	s.NoTable = true
	return s
}

func status(update apirest.RESTUpdateStrategy) *kind.Subresource { return part("status", update) }
