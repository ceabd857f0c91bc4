package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/informers/batch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/ttlafterfinished"
)

const (
	// collectWorkers is the number of workers that delete, and of workers that orphan.
	collectWorkers = 8
	// collectSync is the interval at which the collector looks for new and removed kinds.
	collectSync = time.Second
	// collectStart is how long the collector waits for the objects of all kinds before it begins without
	// them. They are in memory, so it never waits that long.
	collectStart = 10 * time.Minute
)

// runGarbageCollector runs upstream's garbage collector on the objects in the store. If it falls so far
// behind that changes are lost, it ends with an error, and its graph is built anew.
func (m *Manager) runGarbageCollector(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	client, err := kubernetes.NewForConfig(m.client)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	objects, err := metadata.NewForConfig(m.client)
	if err != nil {
		return fmt.Errorf("metadata client: %w", err)
	}
	f := &feeds{ctx: ctx, store: m.config.Store, kinds: m.config.API.Kinds, lost: cancel}
	defer f.wait()
	started := make(chan struct{})
	close(started)
	gc, err := garbagecollector.NewGarbageCollector(ctx, client, objects, NewMapper(m.config.API.Kinds),
		garbagecollector.DefaultIgnoredResources(), f, started)
	if err != nil {
		return err
	}
	f.known = gc.GraphHasUID
	var wg sync.WaitGroup
	wg.Go(func() { gc.Run(ctx, collectWorkers, collectStart) })
	wg.Go(func() { gc.Sync(ctx, &discoveryOnChange{ctx: ctx, kinds: m.config.API.Kinds}, collectSync) })
	wg.Wait()
	return context.Cause(ctx)
}

// finishedWorkers is upstream's number of workers.
const finishedWorkers = 5

// runFinished runs upstream's controller that deletes finished Jobs when their ttlSecondsAfterFinished has
// passed.
func (m *Manager) runFinished(ctx context.Context) error {
	return m.onInformers(ctx, func(ctx context.Context, client kubernetes.Interface, s *informerSet) error {
		c := ttlafterfinished.New(ctx, batch.New(s, "", nil).V1().Jobs(), client)
		s.Start(nil)
		c.Run(ctx, finishedWorkers)
		return nil
	})
}
