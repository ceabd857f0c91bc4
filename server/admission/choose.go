package admission

import (
	"fmt"
	"slices"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// Check refuses plugins in --enable-admission-plugins and --disable-admission-plugins that
// are unknown or in both lists. Otherwise it is as strict as kube-apiserver.
func Check(enable, disable []string) error {
	var errs []error
	for _, name := range enable {
		if named(name) == nil {
			errs = append(errs, unknown("enable-admission-plugins", name))
		}
		if slices.Contains(disable, name) {
			errs = append(errs, fmt.Errorf("plugin %q is in both --enable-admission-plugins and --disable-admission-plugins; leave it out of one", name))
		}
	}
	for _, name := range disable {
		if named(name) == nil {
			errs = append(errs, unknown("disable-admission-plugins", name))
		}
	}
	return utilerrors.NewAggregate(errs)
}

func unknown(flag, name string) error {
	return fmt.Errorf("--%s: plugin %q is unknown; write names out of %s", flag, name, strings.Join(Names(), ", "))
}

func named(name string) *plugin {
	i := slices.IndexFunc(table, func(p plugin) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return &table[i]
}

// chosen returns the plugins to run, in order.
func chosen(enable, disable []string) (plugins []*plugin) {
	for i := range table {
		p := &table[i]
		on := !p.off && !slices.Contains(disable, p.name) || slices.Contains(enable, p.name)
		if on {
			plugins = append(plugins, p)
		}
	}
	return plugins
}

// Names returns the names of all plugins, in the order in which they are asked.
func Names() []string { return namesOf(func(p plugin) bool { return true }) }

// DefaultNames returns the names of the plugins that run unless they are disabled.
func DefaultNames() []string { return namesOf(func(p plugin) bool { return !p.off }) }

func namesOf(which func(plugin) bool) (names []string) {
	for _, p := range table {
		if which(p) {
			names = append(names, p.name)
		}
	}
	return names
}
