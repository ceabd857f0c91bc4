package builtin

import (
	"fmt"

	"k8s.io/kubernetes/pkg/api/legacyscheme"
	deploymentstore "k8s.io/kubernetes/pkg/registry/apps/deployment/storage"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/storage"
)

// addRollback gives Deployments of removed versions that had it the subresource rollback. It
// writes the wish into the object, where apps/v1 has it as the annotation
// deprecated.deployment.rollback.to, and the controller of Deployments does the rest.
func addRollback(o Options, kinds, removed []*kind.Kind) {
	for _, f := range removed {
		body := f.GVK(f.Versions[0].Name).GroupVersion().WithKind("DeploymentRollback")
		if o.Store == nil || f.Resource != "deployments" || !legacyscheme.Scheme.Recognizes(body) {
			continue
		}
		s, err := deploymentstore.NewStorage(storage.New(o.Store, kinds))
		if err != nil {
			panic(fmt.Sprintf("attach upstream's registry of Deployments: %v", err)) // their Kind is missing
		}
		addPost(f, "rollback", body, s.Rollback)
	}
}
