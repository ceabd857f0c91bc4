package builtin

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/server/resourceconfig"

	"github.com/plinth-io/plinth/server/kind"
)

// Forward says which versions are served although they are newer than the release that is emulated.
// https://kubernetes.io/docs/concepts/cluster-administration/compatibility-version/
type Forward struct {
	// Configured are those that --runtime-config names (--runtime-config-emulation-forward-compatible).
	Configured bool
	// Successors are beta and stable ones of resources that the emulated release has in an older version
	// (--emulation-forward-compatible).
	Successors bool
}

var alpha = regexp.MustCompile(`^v\d+alpha\d+$`)

// introduce removes the versions of k that are newer than the release that is emulated (upstream:
// apiserver/pkg/server/deleted_kinds.go).
func (e *Enabled) introduce(k *kind.Kind) {
	if !kind.Emulates() || e.everything {
		return
	}
	older := false // there is an older version
	gone := map[string]bool{}
	oldestFirst := func(a, b kind.Version) int { return apiversion.CompareKubeAwareVersionStrings(a.Name, b.Name) }
	for _, v := range slices.SortedFunc(slices.Values(k.Versions), oldestFirst) {
		switch {
		case e.forward.Successors && older, e.forward.Configured && e.named(k, v.Name), !introducedIn(k.GVK(v.Name)).GreaterThan(kind.Emulated()):
			older = older || !alpha.MatchString(v.Name)
		default:
			gone[v.Name] = true
		}
	}
	k.Versions = slices.DeleteFunc(k.Versions, func(v kind.Version) bool { return gone[v.Name] })
}

// named tells whether the settings name a version of a kind.
func (e *Enabled) named(k *kind.Kind, version string) bool {
	gvr := k.GroupResource().WithVersion(version)
	return e.config.ResourceExplicitlyEnabled(gvr) || e.config.VersionExplicitlyEnabled(gvr.GroupVersion())
}

// introducedIn is the release that had a kind in a version first, as its type tells; 0.0 if it does not.
func introducedIn(gvk schema.GroupVersionKind) *utilversion.Version {
	for _, scheme := range Schemes() {
		obj, err := scheme.New(gvk)
		if err != nil {
			continue
		}
		if i, ok := obj.(interface{ APILifecycleIntroduced() (major, minor int) }); ok {
			major, minor := i.APILifecycleIntroduced()
			return utilversion.MajorMinor(uint(major), uint(minor))
		}
	}
	return utilversion.MajorMinor(0, 0)
}

// checkIntroduced refuses settings that name what the emulated release does not have.
func (e *Enabled) checkIntroduced() error {
	if !kind.Emulates() {
		return nil
	}
	const consider = "Consider setting --runtime-config-emulation-forward-compatible=true"
	has := map[schema.GroupVersion]bool{}
	for _, k := range allKinds() {
		all := slices.Clone(k.Versions)
		e.introduce(k)
		for _, v := range all {
			gvr := k.GroupResource().WithVersion(v.Name)
			served := k.Version(v.Name) != nil
			if !served && e.config.ResourceExplicitlyEnabled(gvr) {
				return fmt.Errorf("cannot enable resource %s in runtime-config because it is introduced at %s after the current version %s. %s",
					gvr, introducedIn(k.GVK(v.Name)), kind.Emulated(), consider)
			}
			has[gvr.GroupVersion()] = has[gvr.GroupVersion()] || served
		}
	}
	byName := func(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) }
	for _, gv := range slices.SortedFunc(maps.Keys(has), byName) {
		if !has[gv] && e.config.VersionExplicitlyEnabled(gv) {
			return fmt.Errorf("cannot enable version %s in runtime-config because all the resources have been introduced after the current version %s. %s",
				gv, kind.Emulated(), consider)
		}
	}
	return nil
}

// enableSuccessors enables versions that are newer than an enabled one, unless the settings say otherwise.
func (e *Enabled) enableSuccessors() error {
	if !e.forward.Successors {
		return nil
	}
	var err error
	e.config, err = resourceconfig.EmulationForwardCompatibleResourceConfig(e.config, e.settings, registered{e.config})
	return err
}
