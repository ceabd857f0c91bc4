package rest

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/plinth-io/plinth/server/kind/custom"
	"github.com/plinth-io/plinth/sqlstore/object"
)

var apiServicePrefix = object.Prefix(apiregistration.GroupName, "apiservices")

// unserved is the answer for a resource that is not served because its definition, or the APIService of its group
// version, cannot be read. Clients must not believe that the resource does not exist. Otherwise unserved is nil.
func (a *API) unserved(info *apirequest.RequestInfo) error {
	if e := a.store.Get(custom.DefinitionPrefix + info.Resource + "." + info.APIGroup); e != nil {
		if _, err := custom.DefinitionOf(e); err != nil {
			return apierrors.NewServiceUnavailable("the CustomResourceDefinition of the resource cannot be read")
		}
	}
	if e := a.store.Get(apiServicePrefix + info.APIVersion + "." + info.APIGroup); e != nil && e.Unreadable() != nil {
		return apierrors.NewServiceUnavailable("the APIService of the group version cannot be read")
	}
	return nil
}

// Undiscovered does for discovery of a group, or of a group version, what unserved does for resources. The versions of
// a definition that cannot be read are not known.
func (a *API) Undiscovered(group, version string) error {
	if bad := a.store.Unreadable(custom.DefinitionPrefix); bad != nil {
		for _, u := range bad.Objects {
			if _, of, _ := strings.Cut(strings.TrimPrefix(u.Key, custom.DefinitionPrefix), "."); of == group {
				return apierrors.NewServiceUnavailable("a CustomResourceDefinition of the group cannot be read")
			}
		}
	}
	if bad := a.store.Unreadable(apiServicePrefix); bad != nil {
		for _, u := range bad.Objects {
			name := strings.TrimPrefix(u.Key, apiServicePrefix)
			if v, of, _ := strings.Cut(name, "."); of == group && (version == "" || v == version) {
				return apierrors.NewServiceUnavailable("an APIService of the group cannot be read")
			}
		}
	}
	return nil
}
