package cluster

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// RepairOnce makes one pass over all Services. Addresses and ports that were taken less than grace
// ago may be for Services that are not stored yet, and are left alone.
func (c *Cluster) RepairOnce(ctx context.Context, grace time.Duration) error {
	return c.newRepair(grace).pass(ctx)
}

// RepairService repairs the addresses and ports of one Service, which the caller has read before.
func (c *Cluster) RepairService(ctx context.Context, grace time.Duration, svc *corev1.Service) error {
	r := c.newRepair(grace)
	if err := r.checkAddresses(ctx, svc); err != nil {
		return err
	}
	return r.checkPorts(ctx, svc)
}

// Replica returns one round of a server's work on Leases, which run out after ttl.
func (c *Cluster) Replica(ttl time.Duration) (round func(context.Context) error) {
	r := newReplica(c.clients, c.config.Store, c.config.Here, ttl)
	return func(ctx context.Context) error { return r.round(ctx, true) }
}

// KeepReplica runs that job of Run which keeps the servers' Leases.
func (c *Cluster) KeepReplica(ctx context.Context) {
	j := c.replicaJob()
	j.run(ctx, c.config.Logger)
}

// InTheMaking returns for how long the repair leaves addresses and ports alone that were taken for
// a Service which is not stored.
var InTheMaking = allocationGrace
