package builtin

import (
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/registry/apiserverinternal/storageversion"

	"github.com/plinth-io/plinth/server/kind"
)

// internalKinds are the resources by which the servers of a cluster publish the versions in
// which they store objects.
func internalKinds() []*kind.Kind {
	return group{scheme: legacyscheme.Scheme, name: "internal.apiserver.k8s.io", versions: []string{"v1alpha1"}}.kinds(
		&kind.Kind{
			Resource: "storageversions", Singular: "storageversion", Kind: "StorageVersion",
			Create: storageversion.Strategy, Update: storageversion.Strategy, Delete: storageversion.Strategy,
			Subresources: subresources(status(storageversion.StatusStrategy)),
		},
	)
}
