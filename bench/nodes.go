package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/plinth-io/plinth/bench/measure"
)

// This file and pods.go measure the cost of a cluster: of nodes that only send heartbeats, and of
// pods that are created and deleted. The clients send the requests of kubelets, a scheduler and a
// controller manager at their pace, and keep their watches open.

const (
	// A kubelet renews its Lease every leaseEvery, and sends a status that has not changed every
	// statusEvery.
	leaseEvery  = 10 * time.Second
	statusEvery = 5 * time.Minute
)

// nodes is the cluster under measurement.
type nodes struct {
	*rig
	leases []bytes.Buffer // the last answer of the server, by node
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
	n := &nodes{rig: &rig{run: r, d: d}, leases: make([]bytes.Buffer, r.scale.nodes)}
	if n.plinth, err = r.startProcess(ctx, order{Do: doPlinth, DSN: s.DSN, Dir: dir}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.plinth.stop()) }()
	if err := n.connectPlinth(ctx); err != nil {
		return err
	}
	defer closeAll(n.toPlinth)
	if err := n.register(ctx); err != nil {
		return err
	}
	return n.watched(ctx, func(ctx context.Context) error {
		return n.steps(ctx, []step{
			{"heartbeats of nodes", n.measureHeartbeats},
			{"pods that come and go", n.measurePods},
		})
	})
}

// register creates the nodes and their leases.
func (n *nodes) register(ctx context.Context) error {
	_, err := measure.Each(ctx, connections, n.scale.nodes, func(ctx context.Context, i int) error {
		c := n.client(i)
		if _, err := c.do(ctx, http.MethodPost, "/api/v1/nodes", nodeObject(i), nil); err != nil {
			return err
		}
		_, err := c.do(ctx, http.MethodPost, leasesPath, leaseObject(i, time.Now()), &n.leases[i])
		return err
	})
	return err
}

func (n *nodes) client(i int) *client { return n.toPlinth[i%connections] }

// watched runs f while the watches of a cluster are open: each kubelet watches its pods and its
// node, the scheduler and the controller manager watch all pods, nodes and leases. Events are read
// and discarded.
func (n *nodes) watched(ctx context.Context, f func(context.Context) error) error {
	paths := []string{
		"/api/v1/pods?watch=1", "/api/v1/nodes?watch=1", // scheduler
		"/api/v1/pods?watch=1", "/api/v1/nodes?watch=1", leasesPath + "?watch=1",
	}
	for i := range n.scale.nodes {
		paths = append(paths, "/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3D"+nodeName(i), "/api/v1/nodes?watch=1&fieldSelector=metadata.name%3D"+nodeName(i))
	}
	watching, stop := context.WithCancel(ctx)
	var readers sync.WaitGroup
	defer readers.Wait()
	defer stop()
	for i, path := range paths {
		response, err := n.client(i).send(watching, http.MethodGet, path, nil)
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

// measureHeartbeats measures while the nodes send nothing but heartbeats, at the pace of kubelets.
func (n *nodes) measureHeartbeats(ctx context.Context) error {
	before, err := n.plinth.cpu()
	if err != nil {
		return err
	}
	begun := time.Now()
	var lease measure.Load
	perNode := leaseEvery / time.Duration(n.scale.nodes)
	status := statusEvery / time.Duration(n.scale.nodes)
	for i, statuses := 0, 0; time.Since(begun) < n.scale.heartbeats; i++ {
		if err := sleepUntil(ctx, begun.Add(time.Duration(i)*perNode)); err != nil {
			return err
		}
		if err := lease.Time(ctx, i%n.scale.nodes, n.renew); err != nil {
			return err
		}
		if time.Since(begun) >= time.Duration(statuses)*status {
			if err := n.sendStatus(ctx, statuses%n.scale.nodes); err != nil {
				return err
			}
			statuses++
		}
	}
	took := time.Since(begun)
	after, err := n.plinth.cpu()
	if err != nil {
		return err
	}
	n.d.add(Figure{
		What: fmt.Sprintf("CPU while %d nodes heartbeat", n.scale.nodes), Value: (after - before).Seconds() / took.Seconds(), Unit: "cores",
		Target: atMost(0.5), Latency: measure.LatencyOf(lease.Samples), Note: "leases every 10 s, status every 5 min",
	})
	return nil
}

func (n *nodes) renew(ctx context.Context, i int) error {
	body := bytes.Clone(n.leases[i].Bytes())
	setField(body, "renewTime", microTime(time.Now()))
	_, err := n.client(i).do(ctx, http.MethodPut, leasesPath+"/"+nodeName(i), body, &n.leases[i])
	return err
}

func (n *nodes) sendStatus(ctx context.Context, i int) error {
	now := time.Now().UTC().Format(time.RFC3339)
	body := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","message":"kubelet is posting ready status","lastHeartbeatTime":%q}]}}`, now)
	_, err := n.client(i).as("", "application/strategic-merge-patch+json").do(ctx, http.MethodPatch, "/api/v1/nodes/"+nodeName(i)+"/status", body, nil)
	return err
}

func sleepUntil(ctx context.Context, t time.Time) error {
	select {
	case <-time.After(time.Until(t)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const leasesPath = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

func nodeName(i int) string { return fmt.Sprintf("node-%03d", i) }

func microTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

func leaseObject(i int, now time.Time) []byte {
	return fmt.Appendf(nil, `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":%[1]q,"namespace":"kube-node-lease"},`+
		`"spec":{"holderIdentity":%[1]q,"leaseDurationSeconds":40,"renewTime":%[2]q}}`, nodeName(i), microTime(now))
}

// nodeObject returns a Node with the 50 images that a kubelet lists, which are most of its bytes.
func nodeObject(i int) []byte {
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
		nodeName(i), room, i%250+1, images.String())
}
