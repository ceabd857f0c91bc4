package control

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Enabled lists the controllers that a list turns on.
func Enabled(list []string) (names []string) {
	enabled, _ := choose(list)
	for _, c := range enabled {
		names = append(names, c.alias)
	}
	return names
}

// CollectPods makes one pass of the pod garbage collector that waits for no node to come
// back and lets threshold pods that have ended stay.
func (m *Manager) CollectPods(ctx context.Context, threshold int) error {
	return m.onInformers(ctx, func(ctx context.Context, client kubernetes.Interface, s *informerSet) error {
		v1 := core.New(s, "", nil).V1()
		g := &podGC{client: client, pods: v1.Pods().Lister(), nodes: v1.Nodes().Lister(), logf: m.config.Logf, threshold: threshold}
		return g.collect(ctx)
	})
}

// RepairOnce makes one pass over Services, for which what was taken longer than grace ago is
// stored by now.
func RepairOnce(ctx context.Context, config Config, grace time.Duration) error {
	c, err := newClients(config.Client)
	if err != nil {
		return err
	}
	return (&repair{clients: c, config: config, grace: grace}).pass(ctx)
}

// RepairService looks at one Service as it was read before.
func RepairService(ctx context.Context, config Config, grace time.Duration, svc *corev1.Service) error {
	c, err := newClients(config.Client)
	if err != nil {
		return err
	}
	r := &repair{clients: c, config: config, grace: grace}
	if err := r.checkAddresses(ctx, svc); err != nil {
		return err
	}
	return r.checkPorts(ctx, svc)
}

// Replica returns the round that a server makes every so often, for Leases that run out
// after ttl.
func Replica(config *rest.Config, at Address, ttl time.Duration) (round func(context.Context) error, err error) {
	c, err := newClients(config)
	if err != nil {
		return nil, err
	}
	r := newReplica(c, at)
	r.identity, r.ttl = at.IP.String(), ttl
	return func(ctx context.Context) error { return r.round(ctx, true) }, nil
}

// InTheMaking is how long the repair leaves alone what was taken.
var InTheMaking = inTheMaking
