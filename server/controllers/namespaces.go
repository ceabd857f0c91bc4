package controllers

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/kubernetes/pkg/controller/namespace/deletion"

	"github.com/plinth-io/plinth/server/kind/custom"
	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/server/reconcile"
	"github.com/plinth-io/plinth/sqlstore"
)

const (
	// namespaceWorkers is the number of namespaces that are emptied at the same time; upstream's default.
	namespaceWorkers = 10

	// delayAlone and delayShared are the pauses after a namespace was deleted and before it is emptied, so
	// that creates which were admitted before have been stored. Upstream waits five seconds, because the
	// informers of its servers may lag that far. Here a server sees its own writes at once, and those of
	// others as soon as its tail reads them.
	delayAlone  = 50 * time.Millisecond
	delayShared = 2 * time.Second
)

// namespaces empties deleted namespaces and then finalizes them. Upstream's deleter does the work. The loop
// around it is our own, because upstream's controller takes at least five seconds for every namespace.
type namespaces struct {
	delay   time.Duration
	logger  *slog.Logger
	deleter deletion.NamespacedResourcesDeleterInterface
	queue   reconcile.Queue
	logged  sync.Map // namespaces whose failure is in the log
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
		lists := preferred(m.config.API.Kinds.Set(), namespaced)
		if len(lists) == 0 { // the deleter ends the process if there are no resources
			lists = append(lists, &metav1.APIResourceList{GroupVersion: "v1"})
		}
		var err error
		if m.config.API.Extensions != nil {
			lists, err = extended(lists, m.config.API.Extensions.Discovered())
		}
		if bad := m.config.Store.Unreadable(custom.DefinitionPrefix); err == nil && bad != nil {
			err = bad // the custom resources are unknown, so that no namespace can be known to be empty
		}
		return lists, err
	}
	n := &namespaces{
		delay:  delayAlone,
		logger: m.config.Logger,
		deleter: deletion.NewNamespacedResourcesDeleter(ctx, statusDamper{client.CoreV1().Namespaces(), m.config.Store}, objects, client.CoreV1(),
			resources, corev1.FinalizerKubernetes),
		queue: reconcile.NewNamedQueue("namespace", reconcile.First, reconcile.Most),
	}
	if m.shared() {
		n.delay = delayShared
	}
	var workers sync.WaitGroup
	defer workers.Wait()
	defer n.queue.ShutDown()
	for range namespaceWorkers {
		workers.Go(func() { n.work(ctx) })
	}
	return lister.Follow(ctx, m.config.Store, lister.NamespacePrefix, func() {}, n.handle)
}

func (n *namespaces) handle(ev *sqlstore.Event) {
	if ev.Type == sqlstore.Put && ownershipOf(ev.Entry.Value).deletionTimestamp != nil && !onlyStatus(ev) {
		n.queue.AddAfter(ev.Entry.Key[len(lister.NamespacePrefix):], n.delay)
	}
}

// onlyStatus reports whether an event changes only the status of a namespace that is being deleted. The
// deleter writes the status itself, and must not be woken by its own writes.
func onlyStatus(ev *sqlstore.Event) bool {
	if ev.Prev == nil {
		return false
	}
	was, err := lister.Decode[corev1.Namespace](ev.Prev)
	if err != nil || was.DeletionTimestamp == nil {
		return false
	}
	is, err := lister.Decode[corev1.Namespace](ev.Entry)
	return err == nil && equality.Semantic.DeepEqual(withoutStatus(was), withoutStatus(is))
}

func withoutStatus(ns *corev1.Namespace) *corev1.Namespace {
	ns = ns.DeepCopy()
	ns.ResourceVersion, ns.ManagedFields, ns.Status = "", nil, corev1.NamespaceStatus{}
	return ns
}

// maxMessagePause is the longest pause between two writes of a failure whose message changes.
const maxMessagePause = time.Minute

// statusDamper is a client of namespaces that does not write every change of a condition's message: the
// message about a namespace that cannot be emptied may differ at each try.
type statusDamper struct {
	typedcore.NamespaceInterface
	store *sqlstore.Store
}

func (c statusDamper) UpdateStatus(ctx context.Context, ns *corev1.Namespace, options metav1.UpdateOptions) (*corev1.Namespace, error) {
	e := c.store.Get(lister.NamespacePrefix + ns.Name)
	if e != nil {
		told, err := lister.Decode[corev1.Namespace](e)
		if since, same := onlyMessagesDiffer(told, ns); err == nil && same && !reconcile.MessageDue(since, time.UnixMilli(e.At), time.Now(), maxMessagePause) {
			return ns, nil
		}
	}
	return c.NamespaceInterface.UpdateStatus(ctx, ns, options)
}

// onlyMessagesDiffer reports whether two statuses of a namespace differ only in the messages of conditions.
// since is the latest transition time of the conditions whose messages differ.
func onlyMessagesDiffer(told, now *corev1.Namespace) (since time.Time, same bool) {
	if told == nil || told.UID != now.UID || told.Status.Phase != now.Status.Phase || len(told.Status.Conditions) != len(now.Status.Conditions) {
		return since, false
	}
	for i, is := range now.Status.Conditions {
		was := told.Status.Conditions[i]
		if was.Type != is.Type || was.Status != is.Status || was.Reason != is.Reason {
			return since, false
		}
		if was.Message != is.Message && was.LastTransitionTime.After(since) {
			since = was.LastTransitionTime.Time
		}
	}
	return since, true
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

// empty tries once to empty a namespace. If objects remain because of finalizers, grace periods or errors,
// the namespace is queued again.
func (n *namespaces) empty(ctx context.Context, name string) {
	err := n.deleter.Delete(ctx, name)
	if err == nil || ctx.Err() != nil {
		n.queue.Forget(name)
		n.logged.Delete(name)
		return
	}
	if _, remaining := err.(*deletion.ResourcesRemainingError); remaining {
		n.logged.Delete(name)
	} else if _, logged := n.logged.LoadOrStore(name, true); !logged {
		n.logger.Warn("namespace could not be emptied; it is tried again", "namespace", name, "err", err)
	}
	n.queue.AddRateLimited(name)
}
