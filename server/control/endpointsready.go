//lint:file-ignore SA1019 Services may still have only the deprecated Endpoints

package control

import (
	"bytes"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
)

const (
	servicePrefix   = "/registry/core/services/"
	endpointsPrefix = "/registry/core/endpoints/"
	slicePrefix     = "/registry/discovery.k8s.io/endpointslices/"
)

// storedObject reads an object, which is shared; nil if it is not there.
func storedObject[T any](store *sqlstore.Store, prefix, key string) *T {
	object, there, err := lister.New[T](store, prefix).GetByKey(key)
	if !there || err != nil {
		return nil
	}
	return object.(*T)
}

// endpointsOf tells whether anything says where a Service leads, and whether one of the
// places is ready and has the port of that name. Upstream asks Endpoints alone; here
// nothing makes them of slices, or the other way round.
func endpointsOf(store *sqlstore.Store, svc *corev1.Service, port string) (there, ready bool) {
	if e := storedObject[corev1.Endpoints](store, endpointsPrefix, svc.Namespace+"/"+svc.Name); e != nil {
		there = true
		ready = slices.ContainsFunc(e.Subsets, func(s corev1.EndpointSubset) bool {
			return len(s.Addresses) > 0 && slices.ContainsFunc(s.Ports, func(p corev1.EndpointPort) bool { return p.Name == port })
		})
	}
	lister.Each(store, slicePrefix, slicePrefix+svc.Namespace+"/", func(s *discoveryv1.EndpointSlice) {
		if s.Labels[discoveryv1.LabelServiceName] != svc.Name {
			return
		}
		there = true
		ready = ready || readySlice(s, port)
	})
	return there, ready
}

func readySlice(s *discoveryv1.EndpointSlice, port string) bool {
	return slices.ContainsFunc(s.Ports, func(p discoveryv1.EndpointPort) bool {
		return p.Name == nil && port == "" || p.Name != nil && *p.Name == port
	}) && slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool {
		return e.Conditions.Ready == nil || *e.Conditions.Ready
	})
}

// sliceOf tells whether e is a slice of that Service.
func sliceOf(e *sqlstore.Entry, ref *apiregistration.ServiceReference) bool {
	label := []byte(`"` + discoveryv1.LabelServiceName + `":"` + ref.Name + `"`)
	return bytes.HasPrefix([]byte(e.Key), []byte(slicePrefix+ref.Namespace+"/")) && bytes.Contains(e.JSON, label)
}
