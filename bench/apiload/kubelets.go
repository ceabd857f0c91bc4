package apiload

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// forEver is longer than any benchmark.
const forEver = 24 * time.Hour

// Working runs f while the nodes do what kubelets do: they send heartbeats, have their pods run at once, and let go of those
// that are being deleted. The first error of a node, other than about a pod that is gone, ends f's context, and is
// returned.
func (n *Nodes) Working(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w, err := n.Watch(ctx, n.Count, n.podsPath, func(i int, stream io.Reader) {
		if err := n.work(ctx, i, stream); ctx.Err() == nil {
			cancel(fmt.Errorf("node %s: %w", n.Name(i), err))
		}
	})
	if err != nil {
		return err
	}
	var beating sync.WaitGroup
	defer beating.Wait()
	defer w.End()
	defer cancel(nil)
	beating.Go(func() {
		if _, _, err := n.Heartbeats(ctx, forEver); err != nil && ctx.Err() == nil {
			cancel(fmt.Errorf("heartbeats: %w", err))
		}
	})
	if err := f(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	return nil
}

// work acts on the events of one node's pods until the stream ends, and returns why that was.
func (n *Nodes) work(ctx context.Context, node int, stream io.Reader) error {
	events := json.NewDecoder(bufio.NewReaderSize(stream, 64<<10))
	for {
		var event struct {
			Type   string     `json:"type"`
			Object corev1.Pod `json:"object"`
		}
		if err := events.Decode(&event); err != nil {
			return fmt.Errorf("the watch has ended: %w", err)
		}
		if event.Type != "ADDED" && event.Type != "MODIFIED" {
			continue
		}
		err := n.advance(ctx, node, &event.Object)
		if code := Code(err); err != nil && code != http.StatusNotFound && code != http.StatusConflict {
			return err
		}
	}
}

// advance writes what a kubelet writes next of a pod, if there is something.
func (n *Nodes) advance(ctx context.Context, node int, pod *corev1.Pod) (err error) {
	path := "/api/v1/namespaces/" + pod.Namespace + "/pods/" + pod.Name
	switch {
	case pod.DeletionTimestamp != nil:
		_, err = n.Of(node).Do(ctx, http.MethodDelete, path, []byte(`{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}`), nil)
	case pod.Status.Phase == corev1.PodPending || pod.Status.Phase == "":
		status := PodStatus("Running", "True", time.Now().UTC().Format(time.RFC3339))
		_, err = n.Of(node).As("", "application/strategic-merge-patch+json").Do(ctx, http.MethodPatch, path+"/status", status, nil)
	}
	return err
}
