package builtin

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Successor is the version of a kind that replaces a removed one.
type Successor struct {
	GVK    schema.GroupVersionKind
	Scheme *runtime.Scheme // converts between both
	Since  int             // first minor release without the old version, 0 if its type does not say
	Gone   bool            // there is no type of the old version any more
}

// gone are removed kinds with a successor whose own types are gone from Kubernetes.
var gone = map[schema.GroupVersionKind]struct {
	version string // that replaces it
	since   int
}{
	{Group: "autoscaling", Version: "v2beta1", Kind: "HorizontalPodAutoscaler"}: {"v2", 25},
	{Group: "autoscaling", Version: "v2beta2", Kind: "HorizontalPodAutoscaler"}: {"v2", 26},
	{Group: "networking.k8s.io", Version: "v1alpha1", Kind: "IPAddress"}:        {"v1", 33},
	{Group: "networking.k8s.io", Version: "v1alpha1", Kind: "ServiceCIDR"}:      {"v1", 33},
	{Group: "scheduling.k8s.io", Version: "v1alpha1", Kind: "PriorityClass"}:    {"v1", 22},
}

// SuccessorOf returns the version that replaces gvk. It is nil if gvk is served today or is not
// a kind of Kubernetes. The error says that nothing replaces gvk.
func SuccessorOf(gvk schema.GroupVersionKind) (*Successor, error) {
	for _, r := range removedByKind() {
		if r.GVK == gvk {
			return &Successor{GVK: r.Now, Scheme: schemeOf(gvk), Since: r.Since}, nil
		}
	}
	if g, ok := gone[gvk]; ok {
		now := gvk.GroupKind().WithVersion(g.version)
		return &Successor{GVK: now, Scheme: schemeOf(now), Since: g.since, Gone: true}, nil
	}
	scheme := schemeOf(gvk)
	unstable := preRelease.MatchString(gvk.Version)
	switch {
	case scheme == nil && unstable && ownGroup(gvk.Group):
		return nil, fmt.Errorf("the types of %s %s are gone from Kubernetes; what to use is in %s", gvk.GroupVersion(), gvk.Kind, MigrationGuide)
	case scheme == nil || !unstable:
		return nil, nil
	}
	since, _ := strconv.Atoi(strings.TrimPrefix(version(scheme, gvk).RemovedIn, "1."))
	if since > minor {
		return nil, nil
	}
	for _, gv := range scheme.PrioritizedVersionsForGroup(gvk.Group) {
		now := gv.WithKind(gvk.Kind)
		if now != gvk && scheme.Recognizes(now) && (!preRelease.MatchString(gv.Version) || since > 0 && stillServed(scheme, now)) {
			return &Successor{GVK: now, Scheme: scheme, Since: since}, nil
		}
	}
	if since == 0 {
		return nil, nil
	}
	return nil, fmt.Errorf("nothing replaces %s %s; what to use is in %s", gvk.GroupVersion(), gvk.Kind, MigrationGuide)
}

var preRelease = regexp.MustCompile(`^v\d+(alpha|beta)\d+$`)

var removedByKind = sync.OnceValue(allRemoved)

func schemeOf(gvk schema.GroupVersionKind) *runtime.Scheme {
	for _, scheme := range Schemes() {
		if scheme.Recognizes(gvk) {
			return scheme
		}
	}
	return nil
}

func ownGroup(group string) bool {
	for _, scheme := range Schemes() {
		if scheme.IsGroupRegistered(group) {
			return true
		}
	}
	return false
}
