package apibench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/plinth-io/plinth/bench/apiload"
	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// podEvery is how often a pod is started, and deleted again, while nodes send heartbeats.
const podEvery = 100 * time.Millisecond

// measureNodes measures clusters of nodes that renew their leases, send their status, and watch their
// pods, of which some come and go.
func (r *run) measureNodes(ctx context.Context) error {
	for _, count := range r.scale.nodes {
		what := figures.Number(float64(count)) + " nodes"
		err := r.Compare(ctx, 1, false, func(ctx context.Context, s *server) ([]figures.Sample, error) { return r.nodes(ctx, s, count) },
			&figures.Row{What: what + ": p99 of renewals of leases", Unit: "ms", Less: true},
			&figures.Row{What: what + ": p99 of writes of pods", Unit: "ms", Less: true},
			&figures.Row{What: what + ": CPU of the server", Unit: "cores", Less: true},
			&figures.Row{What: what + ": written to disks", Unit: "KiB/s", Less: true})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) nodes(ctx context.Context, s *server, count int) (_ []figures.Sample, err error) {
	n := &apiload.Nodes{Clients: s.Clients, Count: count, Prefix: r.name + "-"}
	defer func() { err = errors.Join(err, n.Remove(context.WithoutCancel(ctx))) }()
	if err := n.Register(ctx); err != nil {
		return nil, err
	}
	var renewals, pods measure.Load
	var before, after measure.Footprint
	err = n.Watched(ctx, func(ctx context.Context) (err error) {
		if before, err = s.footprint(ctx); err != nil {
			return err
		}
		var coming sync.WaitGroup
		var failed error
		coming.Go(func() { pods, failed = r.podsComeAndGo(ctx, s, n) })
		renewals, _, err = n.Heartbeats(ctx, r.scale.heartbeats)
		coming.Wait()
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		after, err = s.footprint(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	spent := after.Since(before)
	seconds := renewals.Took.Seconds()
	return []figures.Sample{
		p99(renewals), p99(pods),
		{Value: spent.Spent.CPU.Seconds() / seconds, None: !spent.Known},
		{Value: float64(spent.Spent.Written) / 1024 / seconds, None: !spent.Known},
	}, nil
}

func p99(l measure.Load) figures.Sample {
	return figures.Sample{Value: figures.LatencyOf(l.Samples).P99, Samples: l.Samples}
}

// podsComeAndGo creates pods, one after the other, reports that they run, and deletes them.
func (r *run) podsComeAndGo(ctx context.Context, s *server, n *apiload.Nodes) (writes measure.Load, err error) {
	pods := s.namespace + "/pods"
	begun := time.Now()
	for i := 0; time.Since(begun) < r.scale.heartbeats && ctx.Err() == nil; i++ {
		name := fmt.Sprintf("pod-of-%d-nodes-%05d", n.Count, i)
		now := time.Now().UTC().Format(time.RFC3339)
		for _, w := range []struct {
			method, path, contentType string
			body                      []byte
		}{
			{http.MethodPost, pods, "", apiload.Pod(name, n.Name(i%n.Count))},
			{http.MethodPatch, pods + "/" + name + "/status", "application/strategic-merge-patch+json", apiload.PodStatus("Running", "True", now)},
			{http.MethodDelete, pods + "/" + name, "", []byte(`{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}`)},
		} {
			err := writes.Time(ctx, i, func(ctx context.Context, i int) error {
				_, err := s.Of(i).As("", w.contentType).Do(ctx, w.method, w.path, w.body, nil)
				return err
			})
			if err != nil {
				return writes, err
			}
		}
		_ = sleep.Until(ctx, begun.Add(time.Duration(i+1)*podEvery))
	}
	return writes, ctx.Err()
}
