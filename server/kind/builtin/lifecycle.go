package builtin

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/endpoints/deprecation"

	"github.com/plinth-io/plinth/server/kind"
)

// minor is the release of Kubernetes 1.x that says what is deprecated, also while an older one is emulated, as upstream does.
var minor, _ = strconv.Atoi(kind.Minor)

// version is a version with the releases that deprecate and remove it, as the type tells.
func version(scheme *runtime.Scheme, gvk schema.GroupVersionKind) kind.Version {
	v := kind.Version{Name: gvk.Version}
	obj, err := scheme.New(gvk)
	if err != nil {
		return v
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	if deprecation.IsDeprecated(obj, 1, minor) {
		v.Deprecated = deprecation.WarningMessage(obj)
	}
	if d, ok := obj.(interface{ APILifecycleDeprecated() (int, int) }); ok {
		if major, minor := d.APILifecycleDeprecated(); major > 0 {
			v.DeprecatedIn = fmt.Sprintf("%d.%d", major, minor)
		}
	}
	v.RemovedIn = deprecation.RemovedRelease(obj)
	if r, ok := obj.(interface {
		APILifecycleReplacement() schema.GroupVersionKind
	}); ok {
		v.Replacement = r.APILifecycleReplacement()
	}
	return v
}

// stillServed reports whether a kind is in a version and the release that is emulated serves it
// (upstream: apiserver/pkg/server/deleted_kinds.go).
func stillServed(scheme *runtime.Scheme, gvk schema.GroupVersionKind) bool {
	if !scheme.Recognizes(gvk) {
		return false
	}
	removed := version(scheme, gvk).RemovedIn
	return removed == "" || utilversion.MustParseGeneric(removed).GreaterThan(kind.Emulated())
}
