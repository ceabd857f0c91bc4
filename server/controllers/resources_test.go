package controllers

import (
	"testing"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
)

// TestPreferredNamesObjectsOnce checks that preferred lists each stored object once, even if it is
// served in two groups or in removed versions that are switched on. The group and version are the
// ones in use today.
func TestPreferredNamesObjectsOnce(t *testing.T) {
	all, err := builtin.RemovedAPIs([]string{"all"})
	if err != nil {
		t.Fatal(err)
	}
	kinds := kind.NewRegistry(builtin.Priorities())
	kinds.Replace(nil, builtin.Kinds(builtin.Options{Removed: all}))
	seen := map[string]string{}
	for _, list := range preferred(kinds.Set(), func(k *kind.Kind) bool { return k.Virtual == nil }) {
		for _, r := range list.APIResources {
			k := kinds.Lookup(r.Group, r.Version, r.Name)
			if other := seen[k.Prefix()]; other != "" {
				t.Errorf("%s is in %s and in %s", r.Name, other, list.GroupVersion)
			}
			seen[k.Prefix()] = list.GroupVersion
		}
	}
	for prefix, want := range map[string]string{
		"/registry/apps/deployments/":                     "apps/v1",
		"/registry/networking.k8s.io/ingresses/":          "networking.k8s.io/v1",
		"/registry/core/events/":                          "v1",
		"/registry/batch/cronjobs/":                       "batch/v1",
		"/registry/autoscaling/horizontalpodautoscalers/": "autoscaling/v2",
		"/registry/storage.k8s.io/csistoragecapacities/":  "storage.k8s.io/v1",
	} {
		if seen[prefix] != want {
			t.Errorf("%s: %q, want %s", prefix, seen[prefix], want)
		}
	}
}
