package builtin

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/registry/storagemigration/storagemigration"

	"github.com/plinth-io/plinth/server/kind"
)

func storageMigrationKinds() []*kind.Kind {
	if !utilfeature.DefaultFeatureGate.Enabled(features.StorageVersionMigrator) {
		return nil
	}
	return group{scheme: legacyscheme.Scheme, name: "storagemigration.k8s.io", versions: []string{"v1", "v1beta1"}}.kinds(
		&kind.Kind{
			Resource: "storageversionmigrations", Singular: "storageversionmigration", Kind: "StorageVersionMigration",
			Create: storagemigration.Strategy, Update: storagemigration.Strategy, Delete: storagemigration.Strategy,
			Subresources: subresources(status(storagemigration.StatusStrategy)),
		},
	)
}
