package admission

import (
	"slices"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/plinth-io/plinth/server/fielderr"
)

// Check refuses plugins that are unknown or in both lists. Otherwise it is as strict as kube-apiserver.
func Check(enable, disable []string) error {
	var errs []error
	for _, name := range enable {
		if named(name) == nil {
			errs = append(errs, unknown(enabled, name))
		}
		if slices.Contains(disable, name) {
			errs = append(errs, fielderr.Errorf("plugin %q is in both %v and %v; leave it out of one", name, enabled, disabled))
		}
	}
	for _, name := range disable {
		if named(name) == nil {
			errs = append(errs, unknown(disabled, name))
		}
	}
	return utilerrors.NewAggregate(errs)
}

// The fields of server.Config that name plugins.
const (
	enabled  fielderr.Name = "EnableAdmissionPlugins"
	disabled fielderr.Name = "DisableAdmissionPlugins"
)

func unknown(field fielderr.Name, name string) error {
	return fielderr.Errorf("%v: plugin %q is unknown; write names out of %s", field, name, strings.Join(Names(), ", "))
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
