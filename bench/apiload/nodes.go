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
	// statusEvery. The controller manager and the scheduler renew theirs every leaderEvery.
	leaseEvery  = 10 * time.Second
	statusEvery = 5 * time.Minute
	leaderEvery = 2 * time.Second
)

// Nodes are those of a cluster, which only send heartbeats.
type Nodes struct {
	Clients
	Count   int
	Leaders int    // that renew their leases beside them, such as a scheduler
	Prefix  string // of names

	leases []lease // of nodes, and then of leaders
}

// lease is one that is renewed.
type lease struct {
	mu   sync.Mutex   // held during a renewal
	body bytes.Buffer // the last answer of the server
}

// Name is that of node i.
func (n *Nodes) Name(i int) string { return fmt.Sprintf("%s%03d", n.Prefix, i) }

// podsPath is that of the pods of node i.
func (n *Nodes) podsPath(i int) string {
	return "/api/v1/pods?fieldSelector=spec.nodeName%3D" + n.Name(i)
}

// leasePath is that of lease i.
func (n *Nodes) leasePath(i int) (collection, name string) {
	if i < n.Count {
		return fmt.Sprintf(leasesPath, "kube-node-lease"), n.Name(i)
	}
	return fmt.Sprintf(leasesPath, "kube-system"), fmt.Sprintf("%sleader-%d", n.Prefix, i-n.Count)
}

// Register creates the nodes and the leases.
func (n *Nodes) Register(ctx context.Context) error {
	n.leases = make([]lease, n.Count+n.Leaders)
	_, err := measure.Each(ctx, len(n.Clients), len(n.leases), func(ctx context.Context, i int) error {
		if i < n.Count {
			if _, err := n.Of(i).Do(ctx, http.MethodPost, "/api/v1/nodes", nodeObject(i, n.Name(i)), nil); err != nil {
				return err
			}
		}
		collection, name := n.leasePath(i)
		_, err := n.Of(i).Do(ctx, http.MethodPost, collection, leaseObject(name, time.Now()), &n.leases[i].body)
		return err
	})
	return err
}

// Remove deletes the nodes and the leases, as far as they are there.
func (n *Nodes) Remove(ctx context.Context) error {
	_, err := measure.Each(ctx, len(n.Clients), n.Count+n.Leaders, func(ctx context.Context, i int) error {
		collection, name := n.leasePath(i)
		paths := []string{collection + "/" + name}
		if i < n.Count {
			paths = append(paths, "/api/v1/nodes/"+name)
		}
		for _, path := range paths {
			if _, err := n.Of(i).Do(ctx, http.MethodDelete, path, nil, nil); err != nil && Code(err) != http.StatusNotFound {
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
		"/api/v1/pods", "/api/v1/nodes", // scheduler
		"/api/v1/pods", "/api/v1/nodes", fmt.Sprintf(leasesPath, "kube-node-lease"),
	}
	for i := range n.Count {
		paths = append(paths, n.podsPath(i), "/api/v1/nodes?fieldSelector=metadata.name%3D"+n.Name(i))
	}
	w, err := n.Watch(ctx, len(paths), func(i int) string { return paths[i] }, func(_ int, stream io.Reader) { _, _ = io.Copy(io.Discard, stream) })
	if err != nil {
		return err
	}
	defer w.End()
	return f(ctx)
}

// Heartbeats sends them for a time, at the pace of kubelets and leaders, and returns the renewals of leases and how many
// statuses were sent. A request is sent at its time even if earlier ones have no answer yet.
func (n *Nodes) Heartbeats(ctx context.Context, d time.Duration) (renewals measure.Load, statuses int, err error) {
	var mu sync.Mutex // guards renewals
	begun := time.Now()
	group, sending := errgroup.WithContext(ctx)
	each := func(every time.Duration, f func(i int) error) (sent int) {
		for i := 0; time.Duration(i)*every < d && sleep.Until(sending, begun.Add(time.Duration(i)*every)) == nil; i++ {
			group.Go(func() error { return f(i) })
			sent++
		}
		return sent
	}
	renew := func(i int) error {
		took, err := n.renew(sending, i)
		mu.Lock()
		defer mu.Unlock()
		renewals.Samples = append(renewals.Samples, took)
		return err
	}
	var paces sync.WaitGroup
	paces.Go(func() { each(leaseEvery/time.Duration(n.Count), func(i int) error { return renew(i % n.Count) }) })
	paces.Go(func() {
		statuses = each(statusEvery/time.Duration(n.Count), func(i int) error { return n.sendStatus(sending, i%n.Count) })
	})
	if n.Leaders > 0 {
		paces.Go(func() {
			each(leaderEvery/time.Duration(n.Leaders), func(i int) error { return renew(n.Count + i%n.Leaders) })
		})
	}
	paces.Wait()
	_ = sleep.Until(sending, begun.Add(d))
	err = group.Wait()
	renewals.Ops, renewals.Took = len(renewals.Samples), time.Since(begun)
	return renewals, statuses, errors.Join(err, ctx.Err())
}

func (n *Nodes) renew(ctx context.Context, i int) (time.Duration, error) {
	begun := time.Now()
	l := &n.leases[i]
	l.mu.Lock()
	defer l.mu.Unlock()
	body := bytes.Clone(l.body.Bytes())
	SetField(body, "renewTime", microTime(time.Now()))
	collection, name := n.leasePath(i)
	_, err := n.Of(i).Do(ctx, http.MethodPut, collection+"/"+name, body, &l.body)
	return time.Since(begun), err
}

func (n *Nodes) sendStatus(ctx context.Context, i int) error {
	now := time.Now().UTC().Format(time.RFC3339)
	body := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","message":"kubelet is posting ready status","lastHeartbeatTime":%q}]}}`, now)
	_, err := n.Of(i).As("", "application/strategic-merge-patch+json").Do(ctx, http.MethodPatch, "/api/v1/nodes/"+n.Name(i)+"/status", body, nil)
	return err
}

const leasesPath = "/apis/coordination.k8s.io/v1/namespaces/%s/leases"

func microTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

func leaseObject(node string, now time.Time) []byte {
	return fmt.Appendf(nil, `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":%[1]q},`+
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
