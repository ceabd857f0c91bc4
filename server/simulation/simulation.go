package simulation

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/plinth-io/plinth/server/controllers"
)

// Name is the name of the component.
const Name = "simulated-nodes"

// MostNodes bounds Config.Nodes: each has 254 addresses for pods of its own.
const MostNodes = 2048

// workers is how many pods are written at once.
const workers = 16

// Config says what is simulated.
type Config struct {
	// Nodes is how many nodes there are: node-1, node-2 and so on.
	Nodes int
	// Ranges says that each node is given the addresses of its pods (spec.podCIDR). Else they are out of 10.244.0.0/14 and what
	// follows.
	Ranges bool
}

// Component returns the nodes as a component of a server.
func (c Config) Component() controllers.Component {
	return controllers.Component{Name: Name, Run: c.run}
}

// simulation is what all nodes share.
type simulation struct {
	host  controllers.Host
	queue workqueue.TypedRateLimitingInterface[podKey]

	mu      sync.Mutex
	waiting map[podKey]work // that queue has keys of
}

type podKey struct {
	types.NamespacedName
	uid types.UID
}

// work is a pod of which something is to be written.
type work struct {
	node *node
	pod  *corev1.Pod
}

// run runs the nodes until ctx ends.
func (c Config) run(ctx context.Context, host controllers.Host) error {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[podKey](50*time.Millisecond, 5*time.Second)
	s := &simulation{host: host, queue: workqueue.NewTypedRateLimitingQueue(limiter), waiting: map[podKey]work{}}
	var running sync.WaitGroup
	defer running.Wait()
	defer s.queue.ShutDown()
	nodes := make([]*node, c.Nodes)
	for i := range nodes {
		var err error
		if nodes[i], err = s.newNode(i, c.Ranges); err != nil {
			return err
		}
	}
	for _, n := range nodes {
		running.Go(func() { n.run(ctx) })
	}
	for range workers {
		running.Go(func() { s.work(ctx) })
	}
	host.Works(func() error { return nil })
	<-ctx.Done()
	return nil
}

// add has a pod worked on, as it is now.
func (s *simulation) add(n *node, pod *corev1.Pod) {
	key := keyOf(pod)
	s.mu.Lock()
	s.waiting[key] = work{n, pod}
	s.mu.Unlock()
	s.queue.Add(key)
}

// forget ends the work on a pod that is gone.
func (s *simulation) forget(pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, keyOf(pod))
}

func keyOf(pod *corev1.Pod) podKey {
	return podKey{types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, pod.UID}
}

// take returns the newest state of a pod that waits.
func (s *simulation) take(key podKey) (work, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.waiting[key]
	return w, ok
}

// done ends the work on a pod unless it has changed since.
func (s *simulation) done(key podKey, w work) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[key] == w {
		delete(s.waiting, key)
	}
}

// work works on pods until the queue is shut down.
func (s *simulation) work(ctx context.Context) {
	for {
		key, ended := s.queue.Get()
		if ended {
			return
		}
		s.workOn(ctx, key)
		s.queue.Done(key)
	}
}

// workOn takes a pod one stage further. The change that it makes brings the pod back for the next one.
func (s *simulation) workOn(ctx context.Context, key podKey) {
	w, ok := s.take(key)
	if !ok {
		s.queue.Forget(key)
		return
	}
	err := w.node.advance(ctx, w.pod)
	if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		s.host.Logger.Debug("a simulated pod could not be written; it is tried again", "pod", key.String(), "err", err)
		s.queue.AddRateLimited(key)
		return
	}
	s.queue.Forget(key)
	s.done(key, w)
}

func (s *simulation) newNode(i int, ranged bool) (*node, error) {
	n := &node{simulation: s, name: fmt.Sprintf("node-%d", i+1), index: i, ranged: ranged, used: map[byte]types.UID{}}
	return n, n.open()
}
