//lint:file-ignore SA1019 Services may still have only the deprecated Endpoints

package resolve

import (
	"math/rand/v2"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apiserver/pkg/util/proxy"

	"github.com/plinth-io/plinth/server/lister"
)

// fromSlices returns any ready endpoint of a Service's port in its EndpointSlices, of the Service's first family of
// addresses if there is one; nil if there is none.
func (r *Resolver) fromSlices(svc *corev1.Service, port *corev1.ServicePort) *url.URL {
	var slices []*discoveryv1.EndpointSlice
	lister.EachSlice(r.store, svc, func(s *discoveryv1.EndpointSlice) { slices = append(slices, s) })
	family := corev1.IPFamilyUnknown
	if len(svc.Spec.IPFamilies) > 0 {
		family = svc.Spec.IPFamilies[0]
	}
	host, err := proxy.RandomEndpoint(svc.Name, slices, port.Name, family, func(e *discoveryv1.Endpoint) bool { return len(e.Addresses) > 0 })
	if err != nil {
		return nil
	}
	return &url.URL{Scheme: "https", Host: host}
}

// fromEndpoints returns any ready address of a Service's port in its Endpoints, nil if there is none. kube-apiserver
// reads EndpointSlices alone, which a controller makes of Endpoints; here that may not run.
func (r *Resolver) fromEndpoints(svc *corev1.Service, port *corev1.ServicePort) *url.URL {
	endpoints := lister.Get[corev1.Endpoints](r.store, lister.EndpointsPrefix, svc.Namespace+"/"+svc.Name)
	if endpoints == nil {
		return nil
	}
	var ready []*url.URL
	for _, s := range endpoints.Subsets {
		for _, p := range s.Ports {
			if p.Name != port.Name {
				continue
			}
			for _, a := range s.Addresses {
				ready = append(ready, address(a.IP, p.Port))
			}
		}
	}
	if len(ready) == 0 {
		return nil
	}
	return ready[rand.IntN(len(ready))]
}
