package admit

import (
	"fmt"
	"slices"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// Check tells whether the plugins that are named for --enable-admission-plugins and
// --disable-admission-plugins are known, and in one of both lists only. It is strict where
// kube-apiserver is, and refuses what plinth does not have.
func Check(enable, disable []string) error {
	var errs []error
	for _, name := range enable {
		if p := named(name); p == nil {
			errs = append(errs, unknown("enable-admission-plugins", name))
		} else if p.absent {
			errs = append(errs, fmt.Errorf("enable-admission-plugins: plinth does not have the plugin %q", name))
		}
		if slices.Contains(disable, name) {
			errs = append(errs, fmt.Errorf("[%s] in enable-admission-plugins and disable-admission-plugins overlapped", name))
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
	return fmt.Errorf("%s plugin %q is unknown; write names out of %s", flag, name, strings.Join(Names(), ", "))
}

func named(name string) *plugin {
	i := slices.IndexFunc(table, func(p plugin) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return &table[i]
}

// chosen are the plugins to run, in order.
func chosen(enable, disable []string) (plugins []*plugin) {
	for i := range table {
		p := &table[i]
		on := !p.off && !slices.Contains(disable, p.name) || slices.Contains(enable, p.name)
		if on && !p.absent {
			plugins = append(plugins, p)
		}
	}
	return plugins
}

// Names are the names of all plugins that plinth has, in the order in which they are asked.
func Names() []string { return namesOf(func(p plugin) bool { return true }) }

// DefaultNames are the names of those that run unless they are disabled.
func DefaultNames() []string { return namesOf(func(p plugin) bool { return !p.off }) }

func namesOf(which func(plugin) bool) (names []string) {
	for _, p := range table {
		if !p.absent && which(p) {
			names = append(names, p.name)
		}
	}
	return names
}
