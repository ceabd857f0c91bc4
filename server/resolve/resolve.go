// Package resolve finds the address at which a Service can be reached from the server: for
// webhooks and for extension servers.
package resolve

import (
	"net"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/util/webhook"
	listers "k8s.io/client-go/listers/core/v1"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
)

// Resolver is a webhook.ServiceResolver that reads the store.
type Resolver struct {
	store    *sqlstore.Store
	self     string
	services listers.ServiceLister
}

var _ webhook.ServiceResolver = &Resolver{}

// New returns a resolver of the Services in store. self is the URL of this server, to which
// the Service that stands for the API itself leads.
func New(store *sqlstore.Store, self string) *Resolver {
	return &Resolver{
		store: store, self: self,
		services: listers.NewServiceLister(lister.New[corev1.Service](store, lister.ServicePrefix)),
	}
}

// ResolveEndpoint returns https://HOST:PORT for a port of a Service: its external name, or
// one of its ready endpoints, or its cluster IP, or the name that it has in a cluster's
// DNS, whichever there is first. kube-apiserver takes the cluster IP or, with
// --enable-aggregator-routing, an endpoint; but here nothing may be routing cluster IPs,
// and a Service has one only if its author gave it one.
func (r *Resolver) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	if namespace == corev1.NamespaceDefault && name == "kubernetes" && port == 443 {
		return url.Parse(r.self)
	}
	svc, err := r.services.Services(namespace).Get(name)
	if err != nil {
		return nil, err
	}
	if svc.Spec.Type == corev1.ServiceTypeExternalName {
		return address(svc.Spec.ExternalName, port), nil
	}
	named := portOf(svc, port)
	if named == nil {
		return nil, apierrors.NewServiceUnavailable("no service port " + strconv.Itoa(int(port)) + " found for service " + strconv.Quote(name))
	}
	if u := r.fromSlices(svc, named); u != nil {
		return u, nil
	}
	if u := r.fromEndpoints(svc, named); u != nil {
		return u, nil
	}
	if ip := svc.Spec.ClusterIP; ip != "" && ip != corev1.ClusterIPNone {
		return address(ip, port), nil
	}
	return address(name+"."+namespace+".svc", port), nil
}

func portOf(svc *corev1.Service, port int32) *corev1.ServicePort {
	for i := range svc.Spec.Ports {
		if svc.Spec.Ports[i].Port == port {
			return &svc.Spec.Ports[i]
		}
	}
	return nil
}

func address(host string, port int32) *url.URL {
	return &url.URL{Scheme: "https", Host: net.JoinHostPort(host, strconv.Itoa(int(port)))}
}
