package builtin

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Removed is RemovedAPIs without what the settings switch off by the name of its version or
// its own; api/all, api/beta and api/alpha are about what Kubernetes still has. To switch on
// what is not among names is an error.
func (e *Enabled) Removed(names []string) ([]Removed, error) {
	all, err := RemovedAPIs(names)
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(e.settings)) {
		if e.settings[key] == "true" && onlyRemoved(key) && !slices.ContainsFunc(all, func(r Removed) bool { return r.is(key) }) {
			return nil, fmt.Errorf("%s=true: Kubernetes has removed it; write --serve-removed-apis=%s", key, key)
		}
	}
	return slices.DeleteFunc(all, e.switchesOff), nil
}

// switchesOff tells whether the settings name a removed resource, or its version but not it.
func (e *Enabled) switchesOff(r Removed) bool {
	version := r.GVK.GroupVersion().String()
	if value, ok := e.settings[version+"/"+r.Resource.Resource]; ok {
		return value == "false"
	}
	return e.settings[version] == "false"
}

// is tells whether a key of the settings is a removed resource or its version.
func (r Removed) is(key string) bool {
	version := r.GVK.GroupVersion().String()
	return key == version || key == version+"/"+r.Resource.Resource
}

// onlyRemoved tells whether a key stands for nothing that Kubernetes still has.
func onlyRemoved(key string) bool {
	version, resource := key, ""
	if parts := strings.SplitN(key, "/", 3); len(parts) == 3 {
		version, resource = parts[0]+"/"+parts[1], parts[2]
	}
	if !wasRemoved(version, resource) {
		return false
	}
	for _, k := range everything() {
		for _, v := range k.Versions {
			if k.GVK(v.Name).GroupVersion().String() == version && (resource == "" || resource == k.Resource) {
				return false
			}
		}
	}
	return true
}

// wasRemoved tells whether a version once had a resource; an empty one is any.
func wasRemoved(version, resource string) bool {
	return slices.ContainsFunc(removedByKind(), func(r Removed) bool {
		return r.GVK.GroupVersion().String() == version && (resource == "" || r.Resource.Resource == resource)
	})
}
