package control

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/kubernetes/pkg/controller/namespace/deletion"

	"github.com/plinth-io/plinth/sqlstore"
)

const (
	// namespaceWorkers is how many namespaces are emptied at once; upstream's default.
	namespaceWorkers = 10

	// settleAlone and settleShared are how long a namespace is left alone after it began
	// to end, so that creates which were admitted before have arrived. Upstream waits five
	// seconds because the informers of its servers may be as far behind. Here a server sees
	// its own writes at once, and others' as soon as the tail hears of them.
	settleAlone  = 50 * time.Millisecond
	settleShared = 2 * time.Second

	// The pause before a namespace that is not empty yet is looked at again doubles.
	againFirst = 50 * time.Millisecond
	againMost  = 5 * time.Second
)

// namespaces empties the namespaces that were deleted and then lets them go. The work is
// done by upstream's deleter; the loop around it is ours because upstream's controller
// takes five seconds at the least for every namespace.
type namespaces struct {
	settle  time.Duration
	logf    func(format string, args ...any)
	deleter deletion.NamespacedResourcesDeleterInterface
	queue   workqueue.TypedRateLimitingInterface[string]
}

func (m *Manager) runNamespaces(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(m.client)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	objects, err := metadata.NewForConfig(m.client)
	if err != nil {
		return fmt.Errorf("metadata client: %w", err)
	}
	resources := func() ([]*metav1.APIResourceList, error) {
		lists := preferred(m.config.Kinds.Set(), namespaced)
		if len(lists) == 0 { // all are switched off; the deleter would end the process
			lists = append(lists, &metav1.APIResourceList{GroupVersion: "v1"})
		}
		if m.config.Extensions == nil {
			return lists, nil
		}
		return extended(lists, m.config.Extensions.Discovered())
	}
	n := &namespaces{
		settle: settleAlone,
		logf:   m.config.Logf,
		deleter: deletion.NewNamespacedResourcesDeleter(ctx, client.CoreV1().Namespaces(), objects, client.CoreV1(),
			resources, corev1.FinalizerKubernetes),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](againFirst, againMost)),
	}
	if m.config.Shared {
		n.settle = settleShared
	}
	var workers sync.WaitGroup
	defer workers.Wait()
	defer n.queue.ShutDown()
	for range namespaceWorkers {
		workers.Go(func() { n.work(ctx) })
	}
	return follow(ctx, m.config.Store, namespacePrefix, func() {}, n.handle)
}

const namespacePrefix = "/registry/core/namespaces/"

func (n *namespaces) handle(ev *sqlstore.Event) {
	if ev.Type == sqlstore.Put && ownershipOf(ev.Entry.JSON).deletionTimestamp != nil {
		n.queue.AddAfter(ev.Entry.Key[len(namespacePrefix):], n.settle)
	}
}

func (n *namespaces) work(ctx context.Context) {
	for {
		name, quit := n.queue.Get()
		if quit {
			return
		}
		n.empty(ctx, name)
		n.queue.Done(name)
	}
}

// empty makes one pass over a namespace. What is left in it has finalizers or a grace
// period, or went wrong; all is tried again.
func (n *namespaces) empty(ctx context.Context, name string) {
	err := n.deleter.Delete(ctx, name)
	if err == nil || ctx.Err() != nil {
		n.queue.Forget(name)
		return
	}
	if _, remaining := err.(*deletion.ResourcesRemainingError); !remaining {
		n.logf("namespace %s: %v", name, err)
	}
	n.queue.AddRateLimited(name)
}
