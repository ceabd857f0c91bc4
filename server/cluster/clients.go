package cluster

import (
	"fmt"

	typedcoordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	typeddiscovery "k8s.io/client-go/kubernetes/typed/discovery/v1"
	typedevents "k8s.io/client-go/kubernetes/typed/events/v1"
	typednetworking "k8s.io/client-go/kubernetes/typed/networking/v1"
	typedrbac "k8s.io/client-go/kubernetes/typed/rbac/v1"
	typedscheduling "k8s.io/client-go/kubernetes/typed/scheduling/v1"
	clientrest "k8s.io/client-go/rest"
)

// clients are the typed clients that this package needs. A whole clientset takes longer to make than all
// requests of Bootstrap.
type clients struct {
	core         typedcore.CoreV1Interface
	coordination typedcoordination.CoordinationV1Interface
	discovery    typeddiscovery.DiscoveryV1Interface
	events       typedevents.EventsV1Interface
	networking   typednetworking.NetworkingV1Interface
	rbac         typedrbac.RbacV1Interface
	scheduling   typedscheduling.SchedulingV1Interface
}

func newClients(config *clientrest.Config) (*clients, error) {
	http, err := clientrest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("client of the cluster: %w", err)
	}
	c := &clients{}
	if c.core, err = typedcore.NewForConfigAndClient(config, http); err != nil {
		return nil, fmt.Errorf("client of the cluster: %w", err)
	}
	if c.coordination, err = typedcoordination.NewForConfigAndClient(config, http); err != nil {
		return nil, fmt.Errorf("client of the cluster: %w", err)
	}
	if c.discovery, err = typeddiscovery.NewForConfigAndClient(config, http); err != nil {
		return nil, fmt.Errorf("client of the cluster: %w", err)
	}
	if c.events, err = typedevents.NewForConfigAndClient(config, http); err != nil {
		return nil, fmt.Errorf("client of the cluster: %w", err)
	}
	if c.networking, err = typednetworking.NewForConfigAndClient(config, http); err != nil {
		return nil, fmt.Errorf("client of the cluster: %w", err)
	}
	if c.rbac, err = typedrbac.NewForConfigAndClient(config, http); err != nil {
		return nil, fmt.Errorf("client of the cluster: %w", err)
	}
	if c.scheduling, err = typedscheduling.NewForConfigAndClient(config, http); err != nil {
		return nil, fmt.Errorf("client of the cluster: %w", err)
	}
	return c, nil
}
