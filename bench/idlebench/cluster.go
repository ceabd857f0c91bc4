package idlebench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/sqlstore/sleep"
)

const (
	// A kubelet renews its Lease every leaseEvery, and sends a status that has not changed every
	// statusEvery. The controller manager and the scheduler renew theirs every leaderEvery.
	leaseEvery  = 10 * time.Second
	statusEvery = 5 * time.Minute
	leaderEvery = 2 * time.Second

	leaseSeconds, leaderSeconds = 40, 15

	images = 50 // in the status of a node, which are most of its bytes
	prefix = "plinth-bench-"
)

// cluster is what sends the requests of a cluster that does nothing.
type cluster struct {
	client  kubernetes.Interface
	nodes   []*coordinationv1.Lease
	leaders []*coordinationv1.Lease

	writes  atomic.Int64
	slowest atomic.Int64 // nanoseconds
}

// newCluster makes nodes and Leases. With an error it may have made some.
func newCluster(ctx context.Context, config *clientrest.Config, nodes int) (*cluster, error) {
	config = clientrest.CopyConfig(config)
	config.QPS, config.ContentType, config.UserAgent = -1, "application/vnd.kubernetes.protobuf", "plinth-bench"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	c := &cluster{client: client, nodes: make([]*coordinationv1.Lease, nodes), leaders: make([]*coordinationv1.Lease, 2)}
	for i := range c.nodes {
		name := fmt.Sprintf(prefix+"%03d", i)
		if _, err := client.CoreV1().Nodes().Create(ctx, node(name), metav1.CreateOptions{}); err != nil {
			return c, err
		}
		if c.nodes[i], err = c.lease(ctx, corev1.NamespaceNodeLease, name, leaseSeconds); err != nil {
			return c, err
		}
	}
	for i := range c.leaders {
		name := fmt.Sprintf(prefix+"leader-%d", i)
		if c.leaders[i], err = c.lease(ctx, metav1.NamespaceSystem, name, leaderSeconds); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (c *cluster) lease(ctx context.Context, namespace, name string, seconds int32) (*coordinationv1.Lease, error) {
	now := metav1.NowMicro()
	return c.client.CoordinationV1().Leases(namespace).Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}, metav1.CreateOptions{})
}

// node is one with the status that a kubelet reports.
func node(name string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"}}}
	for _, kind := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeReady} {
		status := corev1.ConditionFalse
		if kind == corev1.NodeReady {
			status = corev1.ConditionTrue
		}
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: status})
	}
	for i := range images {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{
			Names:     []string{fmt.Sprintf("registry.example.com/team/image-%02d@sha256:%064d", i, i), fmt.Sprintf("registry.example.com/team/image-%02d:v1.2.3", i)},
			SizeBytes: int64(i+1) * 1_000_000,
		})
	}
	return n
}

// idle sends what the cluster sends in a time. The nodes are spread over their intervals.
func (c *cluster) idle(ctx context.Context, d time.Duration) error {
	end := time.Now().Add(d)
	all, ctx := errgroup.WithContext(ctx)
	for i := range c.nodes {
		share := float64(i) / float64(len(c.nodes))
		all.Go(func() error {
			return every(ctx, leaseEvery, share, end, func() error { return c.renew(ctx, &c.nodes[i]) })
		})
		all.Go(func() error {
			return every(ctx, statusEvery, share, end, func() error { return c.sendStatus(ctx, c.nodes[i].Name) })
		})
	}
	for i := range c.leaders {
		share := float64(i) / float64(len(c.leaders))
		all.Go(func() error {
			return every(ctx, leaderEvery, share, end, func() error { return c.renew(ctx, &c.leaders[i]) })
		})
	}
	return all.Wait()
}

// every calls f once in each interval until end, first after a share of it.
func every(ctx context.Context, interval time.Duration, share float64, end time.Time, f func() error) error {
	next := time.Now().Add(time.Duration(share * float64(interval)))
	for ; ; next = next.Add(interval) {
		last := next.After(end)
		if last {
			next = end
		}
		if err := sleep.Until(ctx, next); err != nil {
			return err
		}
		if last {
			return nil
		}
		if err := f(); err != nil {
			return err
		}
	}
}

func (c *cluster) renew(ctx context.Context, lease **coordinationv1.Lease) error {
	now := metav1.NowMicro()
	next := (*lease).DeepCopy()
	next.Spec.RenewTime = &now
	begun := time.Now()
	stored, err := c.client.CoordinationV1().Leases(next.Namespace).Update(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	*lease = stored
	took := int64(time.Since(begun))
	for old := c.slowest.Load(); took > old && !c.slowest.CompareAndSwap(old, took); old = c.slowest.Load() {
	}
	c.writes.Add(1)
	return nil
}

func (c *cluster) sendStatus(ctx context.Context, name string) error {
	now := time.Now().UTC().Format(time.RFC3339)
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","message":"kubelet is posting ready status","lastHeartbeatTime":%q}]}}`, now)
	_, err := c.client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	c.writes.Add(1)
	return err
}

// remove deletes what newCluster has made.
func (c *cluster) remove(ctx context.Context) error {
	var errs []error
	gone := func(err error) {
		if !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	for i := range c.nodes {
		name := fmt.Sprintf(prefix+"%03d", i)
		gone(c.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}))
		gone(c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Delete(ctx, name, metav1.DeleteOptions{}))
	}
	for i := range c.leaders {
		gone(c.client.CoordinationV1().Leases(metav1.NamespaceSystem).Delete(ctx, fmt.Sprintf(prefix+"leader-%d", i), metav1.DeleteOptions{}))
	}
	return errors.Join(errs...)
}
