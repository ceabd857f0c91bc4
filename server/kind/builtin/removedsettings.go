package builtin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/plinth-io/plinth/server/kind"
)

// Removed returns RemovedAPIs(names) without the versions and resources that the settings
// disable by name. The settings api/all, api/beta and api/alpha do not concern removed
// versions. A setting that enables a removed version which is not in names is an error.
func (e *Enabled) Removed(names []string) ([]Removed, error) {
	all, err := RemovedAPIs(names)
	if err != nil {
		return nil, err
	}
	if kind.Emulates() { // an older release has the version, perhaps without the feature that its resources need
		return slices.DeleteFunc(all, e.switchesOff), nil
	}
	for _, key := range slices.Sorted(maps.Keys(e.settings)) {
		if e.settings[key] == "true" && onlyRemoved(key) && !slices.ContainsFunc(all, func(r Removed) bool { return r.is(key) }) {
			return nil, fmt.Errorf("%s=true: Kubernetes has removed it; write --serve-removed-apis=%s", key, key)
		}
	}
	return slices.DeleteFunc(all, e.switchesOff), nil
}

// switchesOff reports whether the settings disable a removed resource, by its own name or else
// by its version's.
func (e *Enabled) switchesOff(r Removed) bool {
	version := r.GVK.GroupVersion().String()
	if value, ok := e.settings[version+"/"+r.Resource.Resource]; ok {
		return value == "false"
	}
	return e.settings[version] == "false"
}

// is reports whether a key of the settings is a removed resource or its version.
func (r Removed) is(key string) bool {
	version := r.GVK.GroupVersion().String()
	return key == version || key == version+"/"+r.Resource.Resource
}

// onlyRemoved reports whether a key names removed versions or resources only.
func onlyRemoved(key string) bool {
	version, resource := key, ""
	if parts := strings.SplitN(key, "/", 3); len(parts) == 3 {
		version, resource = parts[0]+"/"+parts[1], parts[2]
	}
	if !wasRemoved(version, resource) {
		return false
	}
	if resource == "" {
		return !hasOthers(version)
	}
	for _, k := range allKinds() {
		for _, v := range k.Versions {
			if k.GVK(v.Name).GroupVersion().String() == version && resource == k.Resource {
				return false
			}
		}
	}
	return true
}

// hasOthers reports whether upstream has kinds in a removed version that were not removed, perhaps without the feature
// gates that they need.
func hasOthers(version string) bool {
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		return false
	}
	known := legacyscheme.Scheme.KnownTypes(gv)
	for name := range known {
		removed := slices.ContainsFunc(removedByKind(), func(r Removed) bool { return r.GVK == gv.WithKind(name) })
		if _, listed := known[name+"List"]; listed && !removed {
			return true
		}
	}
	return false
}

// wasRemoved reports whether a removed version had a resource; an empty resource is any.
func wasRemoved(version, resource string) bool {
	return slices.ContainsFunc(removedByKind(), func(r Removed) bool {
		return r.GVK.GroupVersion().String() == version && (resource == "" || r.Resource.Resource == resource)
	})
}
