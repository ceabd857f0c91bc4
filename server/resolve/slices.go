package resolve

import (
	"math/rand/v2"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/plinth-io/plinth/server/lister"
)

// fromSlices returns any ready endpoint of a Service's port in its EndpointSlices, nil if
// there is none.
func (r *Resolver) fromSlices(svc *corev1.Service, port *corev1.ServicePort) *url.URL {
	var ready []*url.URL
	lister.Each(r.store, lister.SlicePrefix, lister.SlicePrefix+svc.Namespace+"/", func(s *discoveryv1.EndpointSlice) {
		if s.Labels[discoveryv1.LabelServiceName] != svc.Name {
			return
		}
		number := numberOf(s, port.Name)
		for _, e := range s.Endpoints {
			if number != 0 && len(e.Addresses) > 0 && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
				ready = append(ready, address(e.Addresses[0], number))
			}
		}
	})
	if len(ready) == 0 {
		return nil
	}
	return ready[rand.IntN(len(ready))]
}

// numberOf returns the port number that a slice has for the name of a Service's port; 0 if it
// has none.
func numberOf(s *discoveryv1.EndpointSlice, name string) int32 {
	for _, p := range s.Ports {
		if p.Port != nil && lister.IsPort(p, name) {
			return *p.Port
		}
	}
	return 0
}
