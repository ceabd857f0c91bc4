package simulation

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plinth-io/plinth/server/controllers"
	"github.com/plinth-io/plinth/server/reconcile"
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
	queue reconcile.Queue // of keyOf

	mu      sync.Mutex
	waiting map[string]work // that queue has keys of
}

// work is a pod of which something is to be written.
type work struct {
	node *node
	pod  *corev1.Pod
}

// run runs the nodes until ctx ends.
func (c Config) run(ctx context.Context, host controllers.Host) error {
	s := &simulation{host: host, queue: reconcile.NewQueue(reconcile.First, reconcile.Most), waiting: map[string]work{}}
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
		running.Go(func() { reconcile.Work(ctx, host.Logger, "simulated Pod", s.queue, s.workOn) })
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

// keyOf tells a pod from a later one of the same name.
func keyOf(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name + "/" + string(pod.UID) }

// take returns the newest state of a pod that waits.
func (s *simulation) take(key string) (work, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.waiting[key]
	return w, ok
}

// done ends the work on a pod unless it has changed since.
func (s *simulation) done(key string, w work) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[key] == w {
		delete(s.waiting, key)
	}
}

// workOn takes a pod one stage further. The change that it makes brings the pod back for the next one.
func (s *simulation) workOn(ctx context.Context, key string) error {
	w, ok := s.take(key)
	if !ok {
		return nil
	}
	err := w.node.advance(ctx, w.pod)
	if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		s.host.Logger.Debug("a simulated pod could not be written; it is tried again", "pod", key, "err", err)
		return fmt.Errorf("%w: %w", reconcile.ErrReported, err) // to developers: most such pods have been changed meanwhile
	}
	s.done(key, w)
	return nil
}

func (s *simulation) newNode(i int, ranged bool) (*node, error) {
	n := &node{simulation: s, name: fmt.Sprintf("node-%d", i+1), index: i, ranged: ranged, used: map[byte]types.UID{}}
	return n, n.open()
}
