package encryption

import (
	"slices"
	"strings"
)

// metricPrefixes begin the names of upstream's metrics about encryption at rest.
var metricPrefixes = []string{
	"apiserver_storage_transformation_",
	"apiserver_storage_data_key_generation_",
	"apiserver_storage_envelope_transformation_",
	"apiserver_envelope_encryption_",
	"apiserver_encryption_config_controller_",
}

// UpstreamMetric knows the names of these metrics. They count all servers in the process.
func UpstreamMetric(name string) bool {
	return slices.ContainsFunc(metricPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
