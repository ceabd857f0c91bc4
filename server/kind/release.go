package kind

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/util/compatibility"
	basecompatibility "k8s.io/component-base/compatibility"
)

// The release of Kubernetes whose code this is. It is written here and nowhere else.
const (
	Major   = "1"
	Minor   = "37"
	Release = "v" + Major + "." + Minor + ".2"
)

// Effective tells which release this process emulates, with which older releases it is compatible, and which release
// its code is from. Upstream's libraries read the same.
// https://kubernetes.io/docs/concepts/cluster-administration/compatibility-version/
func Effective() basecompatibility.EffectiveVersion {
	return compatibility.DefaultComponentGlobalsRegistry.EffectiveVersionFor(basecompatibility.DefaultKubeComponent)
}

// Emulated is the release that this process emulates: major and minor version.
func Emulated() *version.Version { return Effective().EmulationVersion() }

// Emulates tells whether this process emulates an older release than that of its code.
func Emulates() bool { return Emulated().LessThan(version.MustParseGeneric(Major + "." + Minor)) }

// Emulate makes this process behave as an older release does: its feature gates, its API versions, the versions in which it
// stores. emulated and compatible are the values of kube-apiserver's flags --emulated-version and
// --min-compatibility-version, such as 1.36 or kube=1.36; without them the process is what its code is. It is called before
// anything else asks for features.
func Emulate(emulated, compatible []string) error {
	effective, gates := compatibility.DefaultComponentGlobalsRegistry.ComponentGlobalsOrRegister(basecompatibility.DefaultKubeComponent, nil, nil)
	effective.SetEmulationVersion(effective.BinaryVersion())
	// A registry of its own, because upstream's flags close the feature gates, to which others are still added.
	registry := basecompatibility.NewComponentGlobalsRegistry()
	if err := registry.Register(basecompatibility.DefaultKubeComponent, effective, nil); err != nil {
		return err
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	registry.AddFlags(flags)
	for name, values := range map[string][]string{"emulated-version": emulated, "min-compatibility-version": compatible} {
		if err := flags.Set(name, strings.Join(values, ",")); err != nil {
			return fmt.Errorf("--%s: %w", name, err)
		}
	}
	if err := registry.Set(); err != nil {
		return err
	}
	if errs := registry.Validate(); len(errs) > 0 {
		return errs[0] // the second would follow from it
	}
	return gates.SetEmulationVersionAndMinCompatibilityVersion(effective.EmulationVersion(), effective.MinCompatibilityVersion())
}
