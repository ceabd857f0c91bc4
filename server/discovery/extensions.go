package discovery

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/version"

	"github.com/plinth-io/plinth/server/aggregator"
)

// The priorities that upstream registers this server's own groups and versions with, as far
// as they say where an extension server's go: those of definitions come close to the end.
const (
	customGroup   = 1000
	customVersion = 100
	ownVersion    = 15
)

// withExtensions adds the group versions of extension servers to groups, or puts them in
// the place of those that this server would serve itself. Groups are ordered by the
// greatest groupPriorityMinimum of their versions, versions by their versionPriority.
func withExtensions(groups []*group, found *aggregator.Discovered) []*group {
	if len(found.Versions) == 0 {
		return groups
	}
	byName := map[string]*group{}
	for _, g := range groups {
		byName[g.name] = g
	}
	for _, v := range found.Versions {
		g := byName[v.Spec.Group]
		if g == nil {
			g = &group{name: v.Spec.Group}
			byName[g.name] = g
			groups = append(groups, g)
		}
		g.extend(v)
	}
	for _, g := range byName {
		g.order()
	}
	slices.SortFunc(groups, func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.groupPriority(), a.groupPriority()), cmp.Compare(a.name, b.name))
	})
	return groups
}

func (g *group) extend(v aggregator.Version) {
	if g.extensions == nil {
		g.extensions = map[string]aggregator.Version{}
	}
	g.extensions[v.Spec.Version] = v
	if !slices.Contains(g.versions, v.Spec.Version) {
		g.versions = append(g.versions, v.Spec.Version)
	}
}

func (g *group) order() {
	if g.extensions == nil {
		return
	}
	slices.SortFunc(g.versions, func(a, b string) int {
		return cmp.Or(cmp.Compare(g.versionPriority(b), g.versionPriority(a)), version.CompareKubeAwareVersionStrings(b, a))
	})
}

func (g *group) versionPriority(v string) int32 {
	if x, ok := g.extensions[v]; ok {
		return x.Spec.VersionPriority
	}
	if g.custom() {
		return customVersion
	}
	return ownVersion
}

// groupPriority is the greatest of what the versions are registered with.
func (g *group) groupPriority() int32 {
	greatest := int32(0)
	if g.custom() {
		greatest = customGroup
	}
	for _, x := range g.extensions {
		greatest = max(greatest, x.Spec.GroupPriorityMinimum)
	}
	return max(greatest, int32(g.priority))
}

func (g *group) custom() bool { return len(g.kinds) > 0 && g.kinds[0].Custom != nil }
