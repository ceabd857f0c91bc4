package controllers

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// coalesceFor is the shortest pause between two calls of a handler whose changes are coalesced.
const coalesceFor = 100 * time.Millisecond

// coalesce is for handlers that read all objects of a type after any change. Such a handler is called without
// objects: once when the objects of the start are known, and then once for all changes since its last call. A
// call for each of n objects would read n times n objects.
func (s *informerSet) coalesce(obj runtime.Object) {
	s.InformerFor(obj, nil).(*informer).coalesced = true
}

func (h *handler) runCoalesced() {
	s := h.informer.set
	ctx, cancel := context.WithCancel(s.ctx)
	changed := make(chan struct{}, 1) // has a token when the handler must be called
	changedNow := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	var calling sync.WaitGroup
	calling.Go(func() { h.call(ctx, changed) })
	err := lister.Follow(ctx, s.store, h.informer.prefix, func() {
		close(h.synced)
		changedNow()
	}, func(*sqlstore.Event) {
		if h.HasSynced() {
			changedNow()
		}
	})
	cancel()
	calling.Wait()
	if err != nil {
		s.lost(err)
	}
}

// call calls the handler whenever there is a token, until ctx ends.
func (h *handler) call(ctx context.Context, changed <-chan struct{}) {
	for {
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
		h.to.OnUpdate(nil, nil)
		if sleep.For(ctx, coalesceFor) != nil {
			return
		}
	}
}
