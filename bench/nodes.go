package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/plinth-io/plinth/bench/apiload"
	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
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
	s, err := measure.NewScratch(ctx, dsn, r.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Drop(context.WithoutCancel(ctx))) }()
	dir := filepath.Join(r.dir, "nodes")
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	n := &nodes{rig: &rig{run: r, d: d}}
	if n.plinth, err = r.startProcess(ctx, order{Do: doPlinth, DSN: s.DSN, Dir: dir}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.plinth.stop()) }()
	if err := n.connectPlinth(ctx); err != nil {
		return err
	}
	defer apiload.Close(n.toPlinth)
	n.Nodes = apiload.Nodes{Clients: n.toPlinth, Count: r.scale.nodes, Prefix: "node-"}
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
	begun := time.Now()
	renewals, err := n.Heartbeats(ctx, n.scale.heartbeats)
	if err != nil {
		return err
	}
	took := time.Since(begun)
	after, err := n.plinth.cpu()
	if err != nil {
		return err
	}
	n.d.add(Figure{
		What: fmt.Sprintf("CPU while %d nodes heartbeat", n.Count), Value: (after - before).Seconds() / took.Seconds(), Unit: "cores",
		Target: figures.AtMost(0.5), Latency: figures.LatencyOf(renewals.Samples), Note: "leases every 10 s, status every 5 min",
	})
	return nil
}
