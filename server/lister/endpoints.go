//lint:file-ignore SA1019 Services may still have only the deprecated Endpoints

package lister

import (
	"bytes"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// The prefixes of the resources that several packages look up.
var (
	NamespacePrefix = object.Prefix("", "namespaces")
	ServicePrefix   = object.Prefix("", "services")
	EndpointsPrefix = object.Prefix("", "endpoints")
	SlicePrefix     = object.Prefix(discoveryv1.GroupName, "endpointslices")
)

// Endpoints tells whether a Service has Endpoints or EndpointSlices, and whether one of its
// endpoints is ready and has the port of that name. Upstream asks EndpointSlices alone, which a
// controller makes of Endpoints; here that may not run.
func Endpoints(store *sqlstore.Store, svc *corev1.Service, port string) (there, ready bool) {
	if e := Get[corev1.Endpoints](store, EndpointsPrefix, svc.Namespace+"/"+svc.Name); e != nil {
		there = true
		ready = slices.ContainsFunc(e.Subsets, func(s corev1.EndpointSubset) bool {
			return len(s.Addresses) > 0 && slices.ContainsFunc(s.Ports, func(p corev1.EndpointPort) bool { return p.Name == port })
		})
	}
	EachSlice(store, svc, func(s *discoveryv1.EndpointSlice) {
		there = true
		ready = ready || readySlice(s, port)
	})
	return there, ready
}

// EachSlice calls f with each EndpointSlice of a Service.
func EachSlice(store *sqlstore.Store, svc *corev1.Service, f func(*discoveryv1.EndpointSlice)) {
	Each(store, SlicePrefix, SlicePrefix+svc.Namespace+"/", func(s *discoveryv1.EndpointSlice) {
		if s.Labels[discoveryv1.LabelServiceName] == svc.Name {
			f(s)
		}
	})
}

func readySlice(s *discoveryv1.EndpointSlice, port string) bool {
	return slices.ContainsFunc(s.Ports, func(p discoveryv1.EndpointPort) bool { return ptr.Deref(p.Name, "") == port }) && slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool {
		return e.Conditions.Ready == nil || *e.Conditions.Ready
	})
}

// IsSliceOf tells whether e is an EndpointSlice of the Service that ref names.
func IsSliceOf(e *sqlstore.Entry, ref *apiregistration.ServiceReference) bool {
	label := []byte(`"` + discoveryv1.LabelServiceName + `":"` + ref.Name + `"`)
	return bytes.HasPrefix([]byte(e.Key), []byte(SlicePrefix+ref.Namespace+"/")) && bytes.Contains(e.Value, label)
}
