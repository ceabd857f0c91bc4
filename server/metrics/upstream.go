package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Upstream gives the metrics of upstream's libraries whose name one of wanted knows. They count
// all servers in the process. Upstream's registry is read once for all of wanted.
func Upstream(wanted ...func(name string) bool) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		all, err := legacyregistry.DefaultGatherer.Gather()
		return slices.DeleteFunc(all, func(f *dto.MetricFamily) bool {
			return !slices.ContainsFunc(wanted, func(knows func(string) bool) bool { return knows(f.GetName()) })
		}), err
	})
}

// Named knows the names of a list.
func Named(names []string) func(name string) bool {
	return func(name string) bool { return slices.Contains(names, name) }
}
