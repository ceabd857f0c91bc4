package controllers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	kjson "sigs.k8s.io/json"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
)

// informerSet replaces client-go's factory of shared informers. Its informers have no copy of the objects:
// listers read the store and decode an object when it is requested, and each handler follows the store in its
// own goroutine. As with client-go, informers are made first and then run by Start; core.New and similar
// functions make typed informers of a set.
type informerSet struct {
	ctx   context.Context
	store *sqlstore.Store
	kinds *kind.Registry
	lost  func(error) // is called when a handler has missed changes

	mu       sync.Mutex
	closed   bool
	byPrefix map[string]*informer
	waiting  []*handler // handlers that the next Start runs
	running  sync.WaitGroup
}

var _ internalinterfaces.SharedInformerFactory = &informerSet{}

// onInformers runs one of upstream's controllers until ctx ends. If its informers fall so far behind that
// changes are lost, it returns an error, and the controller must begin anew.
func (m *Manager) onInformers(ctx context.Context, run func(context.Context, kubernetes.Interface, *informerSet) error) error {
	client, err := kubernetes.NewForConfig(m.client)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s := &informerSet{ctx: ctx, store: m.config.Store, kinds: m.config.API.Kinds, lost: cancel, byPrefix: map[string]*informer{}}
	defer s.close()
	defer cancel(nil)
	err = s.catchNotServed(func() error { return run(ctx, client, s) })
	var missing *notServed
	if errors.As(err, &missing) {
		m.config.Logger.Warn("controller does not run", "err", err)
		<-ctx.Done()
	} else if err != nil {
		return err
	}
	return context.Cause(ctx)
}

// notServed is the value with which InformerFor panics, because it cannot return an error.
type notServed struct{ of reflect.Type }

func (e *notServed) Error() string {
	return fmt.Sprintf("no resource is served as %s", e.of)
}

// catchNotServed calls run, and returns an error if run requests an informer of a resource that is not
// served.
func (s *informerSet) catchNotServed(run func() error) (err error) {
	defer func() {
		reason := recover()
		if missing, ok := reason.(*notServed); ok {
			err = missing
		} else if reason != nil {
			panic(reason)
		}
	}()
	return run()
}

// InformerFor returns the informer of a built-in type. It panics with notServed if no resource is served or stored in
// the type's version.
func (s *informerSet) InformerFor(obj runtime.Object, _ internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	of, _, _ := scheme.Scheme.ObjectKinds(obj) // empty for a type that is not built in
	for _, k := range s.kinds.Set().Kinds {
		if gvk := k.StoredGVK(); slices.Contains(of, gvk) {
			return s.informerOf(k, gvk)
		}
		for _, v := range k.Versions {
			if gvk := k.GVK(v.Name); slices.Contains(of, gvk) {
				return s.informerOf(k, gvk)
			}
		}
	}
	panic(&notServed{reflect.TypeOf(obj)})
}

// ForResource returns the informer of a resource in any served version.
func (s *informerSet) ForResource(gvr schema.GroupVersionResource) (informers.GenericInformer, error) {
	k := s.kinds.Lookup(gvr.Group, gvr.Version, gvr.Resource)
	if k == nil {
		return nil, fmt.Errorf("%s is not served", gvr)
	}
	return &genericInformer{s.informerOf(k, k.StoredGVK()), gvr.GroupResource()}, nil
}

// InformerName would name the informers for metrics, which these do not have.
func (s *informerSet) InformerName() *cache.InformerName { return nil }

// filter restricts the handlers of a type to the changes that wanted accepts. Without it, decoding the object
// of every change would cost as much as reading the body of every write.
func (s *informerSet) filter(obj runtime.Object, wanted func(*sqlstore.Event) bool) {
	s.InformerFor(obj, nil).(*informer).wants = wanted
}

// share is for handlers that read all objects of type T many times in a row and modify none of them: an
// object is decoded once for as long as somebody refers to it.
func share[T any, P interface {
	*T
	runtime.Object
}](s *informerSet) {
	s.InformerFor(P(new(T)), nil).(*informer).shared = func(e *sqlstore.Entry) (any, error) { return lister.DecodeWhileUsed[T](e) }
}

// informerOf returns the informer of a resource. The first caller chooses the version of its objects.
func (s *informerSet) informerOf(k *kind.Kind, as schema.GroupVersionKind) *informer {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.byPrefix[k.Prefix()]
	if i == nil {
		i = &informer{set: s, prefix: k.Prefix()}
		var err error
		if i.example, err = scheme.Scheme.New(as); err != nil { // it is a custom resource
			i.example = &metav1.PartialObjectMetadata{}
		} else {
			i.codec, i.version, i.head = k.Codec, as.GroupVersion(), kind.HeadOf(as)
		}
		s.byPrefix[i.prefix] = i
	}
	return i
}

// Start runs the handlers that do not run yet, until the set's context ends.
func (s *informerSet) Start(<-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.waiting {
		if !s.closed {
			s.running.Go(h.run)
		}
	}
	s.waiting = nil
}

// close waits until no handler runs, and prevents new ones from starting.
func (s *informerSet) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.running.Wait()
}

// informer is the informer of one resource. The embedded interface is nil: it has the methods that upstream's
// controllers do not use.
type informer struct {
	cache.SharedIndexInformer
	set       *informerSet
	prefix    string                     // of the resource's keys
	example   runtime.Object             // an empty object
	codec     kind.Codec                 // decodes objects that are stored in another version; nil: their metadata is enough
	version   schema.GroupVersion        // of example
	head      []byte                     // the first bytes of objects that are stored in that version
	wants     func(*sqlstore.Event) bool // selects the changes for handlers; nil: all
	coalesced bool                       // handlers are only told that there was a change
	shared    func(*sqlstore.Entry) (any, error)

	handlers []*handler     // under set.mu
	indexers cache.Indexers // under set.mu
}

func (i *informer) GetStore() cache.Store           { return i.GetIndexer() }
func (i *informer) GetController() cache.Controller { return &informerController{i: i} }

// GetIndexer returns an indexer that reads the store.
func (i *informer) GetIndexer() cache.Indexer {
	return &indexed{lister.Of(i.set.store, i.prefix, i.decode), i}
}

// AddIndexers adds index functions for GetIndexer.
func (i *informer) AddIndexers(indexers cache.Indexers) error {
	i.set.mu.Lock()
	defer i.set.mu.Unlock()
	if i.indexers == nil {
		i.indexers = cache.Indexers{}
	}
	for name, f := range indexers {
		if i.indexers[name] != nil {
			return fmt.Errorf("there is an index %q already", name)
		}
		i.indexers[name] = f
	}
	return nil
}

// HasSynced reports whether every handler has got the objects of the start.
func (i *informer) HasSynced() bool {
	i.set.mu.Lock()
	defer i.set.mu.Unlock()
	for _, h := range i.handlers {
		if !h.HasSynced() {
			return false
		}
	}
	return true
}

// AddEventHandler registers a handler, which runs after the next Start.
func (i *informer) AddEventHandler(to cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.set.mu.Lock()
	defer i.set.mu.Unlock()
	if i.set.closed {
		return nil, errors.New("the informers have ended")
	}
	h := &handler{informer: i, to: to, synced: make(chan struct{})}
	i.handlers = append(i.handlers, h)
	i.set.waiting = append(i.set.waiting, h)
	return h, nil
}

// AddEventHandlerWithResyncPeriod is AddEventHandler. No change is lost, so there is no resync.
func (i *informer) AddEventHandlerWithResyncPeriod(to cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(to)
}

// AddEventHandlerWithOptions is AddEventHandler, for the same reason.
func (i *informer) AddEventHandlerWithOptions(to cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(to)
}

// decode decodes the object of an entry. The result belongs to the caller, unless share was called.
func (i *informer) decode(e *sqlstore.Entry) (any, error) {
	if i.codec != nil && !bytes.HasPrefix(e.Value, i.head) {
		return i.convert(e)
	}
	if i.shared != nil {
		return i.shared(e)
	}
	object := i.example.DeepCopyObject()
	if err := kjson.UnmarshalCaseSensitivePreserveInts(e.Value, object); err != nil {
		return nil, fmt.Errorf("read %s: %w", e.Key, err)
	}
	return object, nil
}

// convert decodes an object that is stored in another version.
func (i *informer) convert(e *sqlstore.Entry) (any, error) {
	hub, err := i.codec.Load(e.Value)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", e.Key, err)
	}
	return i.codec.Versioned(hub, i.version)
}

type genericInformer struct {
	*informer
	resource schema.GroupResource
}

func (g *genericInformer) Informer() cache.SharedIndexInformer { return g.informer }

func (g *genericInformer) Lister() cache.GenericLister {
	return cache.NewGenericLister(g.GetIndexer(), g.resource)
}

// informerController is for controllers that run each informer by itself. Run does nothing, because Start
// runs the handlers.
type informerController struct {
	cache.Controller
	i *informer
}

func (c *informerController) Run(<-chan struct{}) {}
func (c *informerController) HasSynced() bool     { return c.i.HasSynced() }

// indexed is a lister that also has the indexes of the controller. They are not stored: a lookup reads all
// objects, and controllers look up rarely.
type indexed struct {
	cache.Indexer
	informer *informer
}

func (i *indexed) added(name string) cache.IndexFunc {
	i.informer.set.mu.Lock()
	defer i.informer.set.mu.Unlock()
	return i.informer.indexers[name]
}

// ByIndex returns the objects for which an index function returns value.
func (i *indexed) ByIndex(name, value string) ([]any, error) {
	f := i.added(name)
	if f == nil {
		return i.Indexer.ByIndex(name, value)
	}
	return lister.Having(i.List(), f, value)
}

// handler is a registered event handler.
type handler struct {
	informer *informer
	to       cache.ResourceEventHandler
	synced   chan struct{} // closed when the handler has got the objects of the start
}

var _ cache.DoneChecker = &handler{}

// HasSynced reports whether the handler has got the objects of the start.
func (h *handler) HasSynced() bool { return cache.IsDone(h) }

// HasSyncedChecker is HasSynced as a channel.
func (h *handler) HasSyncedChecker() cache.DoneChecker { return h }

// Name implements cache.DoneChecker.
func (h *handler) Name() string { return "handler of " + h.informer.prefix }

// Done implements cache.DoneChecker.
func (h *handler) Done() <-chan struct{} { return h.synced }

func (h *handler) run() {
	s := h.informer.set
	if h.informer.coalesced {
		h.runCoalesced()
		return
	}
	if err := lister.Follow(s.ctx, s.store, h.informer.prefix, func() { close(h.synced) }, h.handle); err != nil {
		s.lost(err)
	}
}

// handle passes a change to the handler. It skips an object that cannot be decoded, as listers do.
func (h *handler) handle(ev *sqlstore.Event) {
	if wants := h.informer.wants; wants != nil && !wants(ev) {
		return
	}
	object, err := h.informer.decode(ev.Entry)
	if err != nil {
		return
	}
	switch {
	case ev.Type == sqlstore.Delete:
		h.to.OnDelete(object)
	case ev.Prev == nil:
		h.to.OnAdd(object, !h.HasSynced())
	default:
		if before, err := h.informer.decode(ev.Prev); err == nil {
			h.to.OnUpdate(before, object)
		}
	}
}
