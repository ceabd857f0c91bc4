package apiload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

const (
	// A kubelet renews its Lease every leaseEvery, and sends a status that has not changed every
	// statusEvery.
	leaseEvery  = 10 * time.Second
	statusEvery = 5 * time.Minute
)

// Nodes are those of a cluster, which only send heartbeats.
type Nodes struct {
	Clients []*Client
	Count   int
	Prefix  string // of names

	leases []lease
}

// lease is the last answer of the server.
type lease struct {
	mu   sync.Mutex // held during a renewal
	body bytes.Buffer
}

// Name is that of node i.
func (n *Nodes) Name(i int) string { return fmt.Sprintf("%s%03d", n.Prefix, i) }

// Client is the one of node i.
func (n *Nodes) Client(i int) *Client { return n.Clients[i%len(n.Clients)] }

// Register creates the nodes and their leases.
func (n *Nodes) Register(ctx context.Context) error {
	n.leases = make([]lease, n.Count)
	_, err := measure.Each(ctx, len(n.Clients), n.Count, func(ctx context.Context, i int) error {
		c := n.Client(i)
		if _, err := c.Do(ctx, http.MethodPost, "/api/v1/nodes", nodeObject(i, n.Name(i)), nil); err != nil {
			return err
		}
		_, err := c.Do(ctx, http.MethodPost, leasesPath, leaseObject(n.Name(i), time.Now()), &n.leases[i].body)
		return err
	})
	return err
}

// Remove deletes the nodes and their leases, as far as they are there.
func (n *Nodes) Remove(ctx context.Context) error {
	_, err := measure.Each(ctx, len(n.Clients), n.Count, func(ctx context.Context, i int) error {
		for _, path := range []string{"/api/v1/nodes/", leasesPath + "/"} {
			_, err := n.Client(i).Do(ctx, http.MethodDelete, path+n.Name(i), nil, nil)
			if failed := new(Error); err != nil && !(errors.As(err, &failed) && failed.Code == http.StatusNotFound) {
				return err
			}
		}
		return nil
	})
	return err
}

// Watched runs f while the watches of a cluster are open: each kubelet watches its pods and its
// node, the scheduler and the controller manager watch all pods, nodes and leases. Events are read
// and discarded.
func (n *Nodes) Watched(ctx context.Context, f func(context.Context) error) error {
	paths := []string{
		"/api/v1/pods?watch=1", "/api/v1/nodes?watch=1", // scheduler
		"/api/v1/pods?watch=1", "/api/v1/nodes?watch=1", leasesPath + "?watch=1",
	}
	for i := range n.Count {
		paths = append(paths, "/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3D"+n.Name(i), "/api/v1/nodes?watch=1&fieldSelector=metadata.name%3D"+n.Name(i))
	}
	watching, stop := context.WithCancel(ctx)
	var readers sync.WaitGroup
	defer readers.Wait()
	defer stop()
	for i, path := range paths {
		response, err := n.Client(i).Send(watching, http.MethodGet, path, nil)
		if err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		readers.Go(func() {
			defer response.Body.Close()
			_, _ = io.Copy(io.Discard, response.Body)
		})
	}
	return f(ctx)
}

// Heartbeats sends them for a time, at the pace of kubelets, and returns the renewals of leases. A
// request is sent at its time even if earlier ones have no answer yet.
func (n *Nodes) Heartbeats(ctx context.Context, d time.Duration) (renewals measure.Load, err error) {
	var mu sync.Mutex // guards renewals
	begun := time.Now()
	perLease, perStatus := leaseEvery/time.Duration(n.Count), statusEvery/time.Duration(n.Count)
	group, sending := errgroup.WithContext(ctx)
	for i, statuses := 0, 0; time.Since(begun) < d && sending.Err() == nil; i++ {
		if sleep.Until(sending, begun.Add(time.Duration(i)*perLease)) != nil {
			break
		}
		group.Go(func() error {
			took, err := n.renew(sending, i%n.Count)
			mu.Lock()
			defer mu.Unlock()
			renewals.Samples = append(renewals.Samples, took)
			return err
		})
		if time.Since(begun) >= time.Duration(statuses)*perStatus {
			node := statuses % n.Count
			group.Go(func() error { return n.sendStatus(sending, node) })
			statuses++
		}
	}
	err = group.Wait()
	renewals.Ops, renewals.Took = len(renewals.Samples), time.Since(begun)
	return renewals, errors.Join(err, ctx.Err())
}

func (n *Nodes) renew(ctx context.Context, i int) (time.Duration, error) {
	begun := time.Now()
	l := &n.leases[i]
	l.mu.Lock()
	defer l.mu.Unlock()
	body := bytes.Clone(l.body.Bytes())
	SetField(body, "renewTime", microTime(time.Now()))
	_, err := n.Client(i).Do(ctx, http.MethodPut, leasesPath+"/"+n.Name(i), body, &l.body)
	return time.Since(begun), err
}

func (n *Nodes) sendStatus(ctx context.Context, i int) error {
	now := time.Now().UTC().Format(time.RFC3339)
	body := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","message":"kubelet is posting ready status","lastHeartbeatTime":%q}]}}`, now)
	_, err := n.Client(i).As("", "application/strategic-merge-patch+json").Do(ctx, http.MethodPatch, "/api/v1/nodes/"+n.Name(i)+"/status", body, nil)
	return err
}

const leasesPath = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

func microTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

func leaseObject(node string, now time.Time) []byte {
	return fmt.Appendf(nil, `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":%[1]q,"namespace":"kube-node-lease"},`+
		`"spec":{"holderIdentity":%[1]q,"leaseDurationSeconds":40,"renewTime":%[2]q}}`, node, microTime(now))
}

// nodeObject returns a Node with the 50 images that a kubelet lists, which are most of its bytes.
func nodeObject(i int, name string) []byte {
	var images strings.Builder
	for k := range 50 {
		if k > 0 {
			images.WriteByte(',')
		}
		fmt.Fprintf(&images, `{"names":["registry.example.com/team/image-%02d@sha256:%064d","registry.example.com/team/image-%02d:v1.2.3"],"sizeBytes":%d}`, k, k, k, 1_000_000*(k+1))
	}
	room := `{"cpu":"16","memory":"64Gi","pods":"110","ephemeral-storage":"100Gi"}`
	return fmt.Appendf(nil, `{"kind":"Node","apiVersion":"v1","metadata":{"name":%[1]q,"labels":{"kubernetes.io/hostname":%[1]q,"kubernetes.io/os":"linux","kubernetes.io/arch":"amd64"}},`+
		`"status":{"capacity":%[2]s,"allocatable":%[2]s,"addresses":[{"type":"InternalIP","address":"10.1.0.%[3]d"},{"type":"Hostname","address":%[1]q}],`+
		`"conditions":[{"type":"MemoryPressure","status":"False"},{"type":"DiskPressure","status":"False"},{"type":"PIDPressure","status":"False"},{"type":"Ready","status":"True"}],"images":[%[4]s]}}`,
		name, room, i%250+1, images.String())
}
