package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/plinth-io/plinth/bench/apiload"
	"github.com/plinth-io/plinth/bench/figures"
)

// This file and pods.go measure the cost of a cluster: of nodes that only send heartbeats, and of
// pods that are created and deleted. The clients send the requests of kubelets, a scheduler and a
// controller manager at their pace, and keep their watches open.

// nodes is the cluster under measurement.
type nodes struct {
	*rig
	apiload.Nodes
}

// measureNodes measures a plinth of its own.
func (r *run) measureNodes(ctx context.Context, d *Database, dsn string) (err error) {
	g, err := r.open(ctx, d, dsn, order{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	n := &nodes{rig: g, Nodes: apiload.Nodes{Clients: g.toPlinth, Count: r.scale.nodes, Prefix: "node-"}}
	if err := n.Register(ctx); err != nil {
		return err
	}
	return n.Watched(ctx, func(ctx context.Context) error {
		return n.steps(ctx, []step{
			{"heartbeats of nodes", n.measureHeartbeats},
			{"pods that come and go", n.measurePods},
		})
	})
}

// measureHeartbeats measures while the nodes send nothing but heartbeats, at the pace of kubelets.
func (n *nodes) measureHeartbeats(ctx context.Context) error {
	before, err := n.plinth.cpu()
	if err != nil {
		return err
	}
	renewals, _, err := n.Heartbeats(ctx, n.scale.heartbeats)
	if err != nil {
		return err
	}
	after, err := n.plinth.cpu()
	if err != nil {
		return err
	}
	n.d.add(Figure{
		What: fmt.Sprintf("CPU while %d nodes heartbeat", n.Count), Value: (after - before).Seconds() / renewals.Took.Seconds(), Unit: "cores",
		Target: figures.AtMost(0.5), Latency: figures.LatencyOf(renewals.Samples), Note: "leases every 10 s, status every 5 min",
	})
	return nil
}
