package bench

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plinth-io/plinth/bench/apiload"
	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

const (
	// podsPerSecond is the number of pods that a kube-scheduler binds with --kube-api-qps=50.
	podsPerSecond = 50
	// podLives bounds how many pods run through their lives at once.
	podLives = 64
)

// times are the durations of writes and of reads.
type times struct {
	mu            sync.Mutex
	writes, reads []time.Duration
}

func (t *times) took(method string, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if method == http.MethodGet {
		t.reads = append(t.reads, d)
	} else {
		t.writes = append(t.writes, d)
	}
}

// measurePods creates, binds, runs and deletes pods: first at a fixed pace, to measure the duration
// of requests, and then as fast as possible.
func (n *nodes) measurePods(ctx context.Context) error {
	var paced, free times
	begun := time.Now()
	err := n.live(ctx, "paced", func(i int) time.Time { return begun.Add(time.Duration(i) * time.Second / podsPerSecond) }, &paced)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s pods' lives, %d begun a second: ", figures.Number(float64(n.scale.pods)), podsPerSecond)
	writes, reads := figures.LatencyOf(paced.writes), figures.LatencyOf(paced.reads)
	n.d.add(Figure{What: what + "writes", Value: writes.P99, Unit: "ms p99", Target: figures.AtMost(50), Latency: writes})
	n.d.add(Figure{What: what + "gets", Value: reads.P99, Unit: "ms p99", Target: figures.AtMost(10), Latency: reads})
	before, err := n.plinth.cpu()
	if err != nil {
		return err
	}
	begun = time.Now()
	if err := n.live(ctx, "free", func(int) time.Time { return begun }, &free); err != nil {
		return err
	}
	took := time.Since(begun).Seconds()
	after, err := n.plinth.cpu()
	n.d.add(Figure{
		What: "pods' lives, 64 at a time", Value: float64(n.scale.pods) / took, Unit: "pods/s",
		Target: figures.AtLeast(podsPerSecond), Latency: figures.LatencyOf(free.writes), Note: "each seven writes and two gets",
	})
	n.d.add(Figure{What: "a pod's life, server CPU", Value: figures.Millis(after-before) / float64(n.scale.pods), Unit: "ms"})
	return err
}

// live runs the lives of all pods. Pod i starts at begin(i).
func (n *nodes) live(ctx context.Context, name string, begin func(i int) time.Time, t *times) error {
	group, living := errgroup.WithContext(ctx)
	group.SetLimit(podLives)
	for i := range n.scale.pods {
		if err := sleep.Until(living, begin(i)); err != nil {
			break // the group has the reason, or ctx
		}
		group.Go(func() error { return n.life(living, i, fmt.Sprintf("%s-%05d", name, i), t) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err() // it may have ended while no pod lived
}

// life sends the requests of a ReplicaSet's controller, the scheduler and the kubelet for one pod.
func (n *nodes) life(ctx context.Context, i int, name string, t *times) error {
	const pods = "/api/v1/namespaces/bench/pods"
	path, node := pods+"/"+name, n.Name(i%n.Count)
	now := time.Now().UTC().Format(time.RFC3339)
	binding := fmt.Appendf(nil, `{"kind":"Binding","apiVersion":"v1","metadata":{"name":%q,"namespace":"bench"},"target":{"kind":"Node","name":%q}}`, name, node)
	const patch = "application/strategic-merge-patch+json"
	for _, r := range []struct {
		method, path, contentType string
		body                      []byte
	}{
		{http.MethodPost, pods, "", apiload.Pod(name, "")},
		{http.MethodPost, path + "/binding", "", binding},
		{http.MethodGet, path, "", nil},
		{http.MethodPatch, path + "/status", patch, apiload.PodStatus("Pending", "False", now)},
		{http.MethodPatch, path + "/status", patch, apiload.PodStatus("Running", "True", now)},
		{http.MethodDelete, path, "", []byte(`{"kind":"DeleteOptions","apiVersion":"v1"}`)},
		{http.MethodGet, path, "", nil},
		{http.MethodPatch, path + "/status", patch, apiload.PodStatus("Succeeded", "False", now)},
		{http.MethodDelete, path, "", []byte(`{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}`)},
	} {
		var answer bytes.Buffer
		begun := time.Now()
		if _, err := n.Of(i).As("", r.contentType).Do(ctx, r.method, r.path, r.body, &answer); err != nil {
			return err
		}
		t.took(r.method, time.Since(begun))
	}
	return nil
}
