package builtin

import (
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/registry/storage/csidriver"
	"k8s.io/kubernetes/pkg/registry/storage/csinode"
	"k8s.io/kubernetes/pkg/registry/storage/csistoragecapacity"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattachment"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattributesclass"

	"github.com/plinth-io/plinth/server/kind"
)

func storageKinds() []*kind.Kind {
	return group{scheme: legacyscheme.Scheme, name: "storage.k8s.io", versions: []string{"v1", "v1beta1"}}.kinds(
		&kind.Kind{
			Resource: "csidrivers", Singular: "csidriver", Kind: "CSIDriver",
			Create: csidriver.Strategy, Update: csidriver.Strategy, Delete: csidriver.Strategy,
			ReturnDeleted: true,
		},
		&kind.Kind{
			Resource: "csinodes", Singular: "csinode", Kind: "CSINode",
			Create: csinode.Strategy, Update: csinode.Strategy, Delete: csinode.Strategy,
			ReturnDeleted: true,
			Subresources:  subresources(status(csinode.StatusStrategy)),
		},
		&kind.Kind{
			Resource: "csistoragecapacities", Singular: "csistoragecapacity", Kind: "CSIStorageCapacity",
			Namespaced: true,
			Create:     csistoragecapacity.Strategy, Update: csistoragecapacity.Strategy, Delete: csistoragecapacity.Strategy,
			Table: nameAndCreated("storage.k8s.io", "csistoragecapacities"),
		},
		&kind.Kind{
			Resource: "storageclasses", Singular: "storageclass", Kind: "StorageClass",
			ShortNames: []string{"sc"},
			Create:     storageclass.Strategy, Update: storageclass.Strategy, Delete: storageclass.Strategy,
			ReturnDeleted: true,
		},
		&kind.Kind{
			Resource: "volumeattachments", Singular: "volumeattachment", Kind: "VolumeAttachment",
			Create: volumeattachment.Strategy, Update: volumeattachment.Strategy, Delete: volumeattachment.Strategy,
			ReturnDeleted: true,
			Subresources:  subresources(status(volumeattachment.StatusStrategy)),
		},
		&kind.Kind{
			Resource: "volumeattributesclasses", Singular: "volumeattributesclass", Kind: "VolumeAttributesClass",
			ShortNames: []string{"vac"},
			Create:     volumeattributesclass.Strategy, Update: volumeattributesclass.Strategy, Delete: volumeattributesclass.Strategy,
			ReturnDeleted: true,
		},
	)
}
