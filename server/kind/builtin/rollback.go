package builtin

import (
	"fmt"

	"k8s.io/kubernetes/pkg/api/legacyscheme"
	deploymentstore "k8s.io/kubernetes/pkg/registry/apps/deployment/storage"

	"github.com/plinth-io/plinth/server/kind"
)

// rollback is the subresource that Deployments had in some removed versions; nil for the
// others. It writes the annotation deprecated.deployment.rollback.to into the object, and
// the controller of Deployments does the rest.
func (s *stores) rollback(r Removed) *kind.Subresource {
	body := r.GVK.GroupVersion().WithKind("DeploymentRollback")
	if s.Store == nil || !legacyscheme.Scheme.Recognizes(body) {
		return nil
	}
	deployments, err := deploymentstore.NewStorage(s.getter)
	if err != nil {
		panic(fmt.Sprintf("build upstream's registry of Deployments: %v", err)) // every test of it would fail
	}
	return s.post("rollback", body, deployments.Rollback)
}
