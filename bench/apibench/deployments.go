package apibench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/plinth-io/plinth/bench/apiload"
	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// stepDeployments is the name of the step that needs controllers and a scheduler. plinth is started with its own then.
const stepDeployments = "deployments"

// NeedsCluster tells whether a measurement that is named needs controllers and a scheduler.
func NeedsCluster(only []string) bool { return slices.Contains(only, stepDeployments) }

// deploymentPoll is how often the state of a Deployment is read while it changes.
const deploymentPoll = 100 * time.Millisecond

// measureDeployments measures a whole control plane by a Deployment: until all its pods are ready, until a rollout has replaced
// them, and until they are gone. The benchmark does the work of the nodes, for all servers alike.
func (r *run) measureDeployments(ctx context.Context) error {
	what := fmt.Sprintf("%s pods on %s nodes: ", figures.Number(float64(r.scale.replicas)), figures.Number(float64(r.scale.workers)))
	return r.Compare(ctx, 1, false, r.deployment,
		&figures.Row{What: what + "first one bound", Unit: "ms", Less: true},
		&figures.Row{What: what + "all ready", Unit: "s", Less: true},
		&figures.Row{What: what + "replaced by a rollout", Unit: "s", Less: true},
		&figures.Row{What: what + "gone", Unit: "s", Less: true},
		&figures.Row{What: what + "CPU of the control plane", Unit: "s", Less: true},
		&figures.Row{What: what + "memory of all its processes, when all are ready", Unit: "MiB", Less: true})
}

func (r *run) deployment(ctx context.Context, s *server) (samples []figures.Sample, err error) {
	n := &apiload.Nodes{Clients: s.Clients, Count: r.scale.workers, Prefix: r.name + "-worker-"}
	defer func() { err = errors.Join(err, n.Remove(context.WithoutCancel(ctx))) }()
	if err := n.Register(ctx); err != nil {
		return nil, err
	}
	d := &deployed{server: s, replicas: r.scale.replicas}
	err = n.Working(ctx, func(ctx context.Context) error {
		samples, err = d.measure(ctx)
		return err
	})
	return samples, err
}

// deployed is a Deployment on a server.
type deployed struct {
	*server
	replicas int
}

const deploymentName = "web"

func (d *deployed) collection() string {
	return "/apis/apps/v1" + d.namespace[len("/api/v1"):] + "/deployments"
}

func (d *deployed) path() string { return d.collection() + "/" + deploymentName }

// measure returns the samples of the rows.
func (d *deployed) measure(ctx context.Context) (samples []figures.Sample, err error) {
	before, known := measure.Spend(d.PIDs)
	begun := time.Now()
	if _, err := d.Clients[0].Do(ctx, http.MethodPost, d.collection(), apiload.Deployment(deploymentName, 1), nil); err != nil {
		return nil, err
	}
	if err := d.await(ctx, d.isReady(1)); err != nil {
		return nil, err
	}
	bound := time.Since(begun)
	ready, err := d.change(ctx, http.MethodPatch, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, d.replicas), d.isReady(d.replicas))
	if err != nil {
		return nil, err
	}
	full, still := measure.Spend(d.PIDs)
	rolled, err := d.change(ctx, http.MethodPatch, []byte(`{"spec":{"template":{"metadata":{"annotations":{"bench":"second"}}}}}`), d.isReady(d.replicas))
	if err != nil {
		return nil, err
	}
	gone, err := d.change(ctx, http.MethodDelete, []byte(`{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}`), d.isGone)
	if err != nil {
		return nil, err
	}
	after, also := measure.Spend(d.PIDs)
	none := !known || !still || !also
	return []figures.Sample{
		{Value: figures.Millis(bound)}, {Value: ready.Seconds()}, {Value: rolled.Seconds()}, {Value: gone.Seconds()},
		{Value: after.Since(before).CPU.Seconds(), None: none}, {Value: figures.MiB(full.RSS), None: none},
	}, nil
}

// change sends a request about the Deployment, and returns how long it takes until what it asks for is done.
func (d *deployed) change(ctx context.Context, method string, body []byte, done func(context.Context) (bool, error)) (time.Duration, error) {
	contentType := ""
	if method == http.MethodPatch {
		contentType = "application/merge-patch+json"
	}
	begun := time.Now()
	if _, err := d.Clients[0].As("", contentType).Do(ctx, method, d.path(), body, nil); err != nil {
		return 0, err
	}
	err := d.await(ctx, done)
	return time.Since(begun), err
}

func (d *deployed) await(ctx context.Context, done func(context.Context) (bool, error)) error {
	for {
		if is, err := done(ctx); is || err != nil {
			return err
		}
		if err := sleep.For(ctx, deploymentPoll); err != nil {
			return err
		}
	}
}

// isReady tells whether all pods of the newest template are ready, and no others are there.
func (d *deployed) isReady(replicas int) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		var text bytes.Buffer
		var now appsv1.Deployment
		if _, err := d.Clients[0].Do(ctx, http.MethodGet, d.path(), nil, &text); err != nil {
			return false, err
		}
		if err := json.Unmarshal(text.Bytes(), &now); err != nil {
			return false, err
		}
		status, want := now.Status, int32(replicas)
		return status.ObservedGeneration == now.Generation && status.UpdatedReplicas == want && status.AvailableReplicas == want && status.Replicas == want, nil
	}
}

// isGone tells whether the namespace has no pods.
func (d *deployed) isGone(ctx context.Context) (bool, error) {
	var list bytes.Buffer
	_, err := d.Clients[0].As("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", "").Do(ctx, http.MethodGet, d.namespace+"/pods?limit=1", nil, &list)
	return !bytes.Contains(list.Bytes(), []byte(`"uid"`)), err
}
