package builtin

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/resourceconfig"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/kubeapiserver"

	"github.com/plinth-io/plinth/server/kind"
)

var encodingsOf sync.Map // by the releases that kind.Effective tells

// encodings tells in which versions kube-apiserver stores the resources of legacyscheme.Scheme.
func encodings() serverstorage.CompatibilityResourceEncodingConfig {
	releases := kind.Effective().String()
	if known, ok := encodingsOf.Load(releases); ok {
		return known.(serverstorage.CompatibilityResourceEncodingConfig)
	}
	c := kubeapiserver.NewStorageFactoryConfig()
	made := resourceconfig.MergeResourceEncodingConfigs(c.DefaultResourceEncoding, c.ResourceEncodingOverrides)
	encodingsOf.Store(releases, made)
	return made
}

var storageVersions sync.Map // by storageKey, because upstream looks through all types

type storageKey struct {
	resource schema.GroupResource
	releases string // see encodings
}

// storageVersion is the version in which kube-apiserver stores a resource: the newest that the
// release before can read, which does not depend on the versions that are served.
func storageVersion(scheme *runtime.Scheme, resource schema.GroupResource, name string) string {
	if scheme != legacyscheme.Scheme { // the others have one stable version
		return scheme.PrioritizedVersionsForGroup(resource.Group)[0].Version
	}
	key := storageKey{resource, kind.Effective().String()}
	if version, ok := storageVersions.Load(key); ok {
		return version.(string)
	}
	example, err := scheme.New(schema.GroupVersionKind{Group: resource.Group, Version: runtime.APIVersionInternal, Kind: name})
	if err != nil {
		panic(err) // a Kind of this package without a type: every test would fail
	}
	gv, err := encodings().BackwardCompatibileStorageEncodingFor(resource, example)
	if err != nil {
		panic(fmt.Sprintf("storage version of %v: %v", resource, err)) // likewise
	}
	storageVersions.Store(key, gv.Version)
	return gv.Version
}
