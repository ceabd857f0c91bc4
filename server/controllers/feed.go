package controllers

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
)

// feeds replaces the informers of upstream's garbage collector. An informer has a copy of every object and
// several goroutines; for all resources together, that would be most of an idle server's memory. A feed is
// one goroutine that follows the store and stores nothing: the collector has what it needs in its own graph.
type feeds struct {
	ctx   context.Context
	store *sqlstore.Store
	kinds *kind.Registry
	lost  func(error)          // is called when a feed has missed changes
	known func(types.UID) bool // reports whether an object is in the collector's graph

	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

// Start does nothing, because the collector runs each feed as a monitor's Controller.
func (f *feeds) Start(<-chan struct{}) {}

// ForResource returns a new feed of one resource.
func (f *feeds) ForResource(gvr schema.GroupVersionResource) (informers.GenericInformer, error) {
	k := f.kinds.Lookup(gvr.Group, gvr.Version, gvr.Resource)
	if k == nil {
		return nil, fmt.Errorf("%s is not served", gvr)
	}
	return &feed{feeds: f, kind: k}, nil
}

func (f *feeds) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.wg.Add(1)
	}
	return !f.closed
}

// wait waits until no feed runs, and prevents new ones from starting.
func (f *feeds) wait() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.wg.Wait()
}

// feed follows one resource. The collector uses it as an informer, a controller and a store, and calls only
// the methods below. The embedded interfaces are nil.
type feed struct {
	feeds   *feeds
	kind    *kind.Kind
	handler cache.ResourceEventHandler // set before the feed runs

	read   atomic.Bool     // all objects of the start have been passed on
	last   *sqlstore.Entry // the last of these objects; final when read is set
	synced atomic.Bool     // the collector has processed all of them
}

func (f *feed) Informer() cache.SharedIndexInformer { return &feedInformer{f: f} }
func (f *feed) Lister() cache.GenericLister         { return nil }

type feedInformer struct {
	cache.SharedIndexInformer
	f *feed
}

func (i *feedInformer) GetController() cache.Controller { return &feedController{f: i.f} }
func (i *feedInformer) GetStore() cache.Store           { return &feedStore{f: i.f} }

// AddEventHandlerWithResyncPeriod is called once. A feed loses no changes, so it needs no resync.
func (i *feedInformer) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	i.f.handler = h
	return nil, nil
}

type feedController struct {
	cache.Controller
	f *feed
}

// HasSynced is false until all objects of the start are in the collector's graph, not only in the queue in
// front of it. The collector's workers wait for that: an owner whose dependents become orphans must not be
// deleted before its dependents are known.
func (c *feedController) HasSynced() bool {
	f := c.f
	if !f.synced.Load() && f.read.Load() && f.caughtUp() {
		f.synced.Store(true)
	}
	return f.synced.Load()
}

// caughtUp reports whether the collector has processed the last object of the start. The collector works in
// order. An object that has been deleted since is never in the graph.
func (f *feed) caughtUp() bool {
	if f.last == nil {
		return true
	}
	o := ownershipOf(f.last.Value)
	return f.feeds.known(o.id()) || f.feeds.store.Get(f.last.Key) == nil
}

// Run feeds the collector until stop is closed, which happens when the resource is no longer served.
func (c *feedController) Run(stop <-chan struct{}) {
	f := c.f
	if !f.feeds.enter() {
		return
	}
	defer f.feeds.wg.Done()
	ctx, cancel := context.WithCancel(f.feeds.ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		defer cancel()
		select {
		case <-stop:
		case <-ctx.Done():
		}
	})
	if err := lister.Follow(ctx, f.feeds.store, f.kind.Prefix(), func() { f.read.Store(true) }, f.handle); err != nil {
		f.feeds.lost(err)
	}
}

// handle passes changes of ownership on to the collector. Most changes are none, and cost next to nothing
// here.
func (f *feed) handle(ev *sqlstore.Event) {
	now := ownershipOf(ev.Entry.Value)
	if !f.read.Load() {
		f.last = ev.Entry
	}
	switch {
	case ev.Type == sqlstore.Delete:
		f.handler.OnDelete(f.object(ev.Entry, &now))
	case ev.Prev == nil:
		f.handler.OnAdd(f.object(ev.Entry, &now), !f.read.Load())
	default:
		if before := ownershipOf(ev.Prev.Value); !now.equal(&before) {
			f.handler.OnUpdate(f.object(ev.Prev, &before), f.object(ev.Entry, &now))
		}
	}
}

// object returns the metadata that the collector reads of an entry.
func (f *feed) object(e *sqlstore.Entry, o *ownership) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.Namespace, object.Name = f.kind.SplitKey(e.Key)
	object.ResourceVersion = strconv.FormatInt(e.Revision, 10)
	o.decode(&object.ObjectMeta)
	return object
}

// feedStore reads objects from the store.
type feedStore struct {
	cache.Store
	f *feed
}

func (s *feedStore) GetByKey(key string) (item any, exists bool, err error) {
	e := s.f.feeds.store.Get(s.f.kind.Prefix() + key)
	if e == nil {
		return nil, false, nil
	}
	o := ownershipOf(e.Value)
	return s.f.object(e, &o), true, nil
}
