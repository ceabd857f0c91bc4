package admission

import (
	"context"
	"sync"
)

// Reservations are the writes of this process that a ResourceQuota has counted and that may not be stored yet. Until
// they are, the quota's status is ahead of the objects. The zero value is ready; a nil *Reservations stays empty. The
// methods are safe for concurrent use.
type Reservations struct {
	mu      sync.Mutex
	running map[string]map[context.Context]struct{} // writes by namespace
}

// Begin adds a write, before a quota counts it. The write ends with its context: the object is stored
// by then, or never will be.
func (r *Reservations) Begin(write context.Context, namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == nil {
		r.running = map[string]map[context.Context]struct{}{}
	}
	if r.running[namespace] == nil {
		r.running[namespace] = map[context.Context]struct{}{}
	}
	r.running[namespace][write] = struct{}{}
	context.AfterFunc(write, func() { r.end(write, namespace) })
}

func (r *Reservations) end(write context.Context, namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running[namespace], write)
	if len(r.running[namespace]) == 0 {
		delete(r.running, namespace)
	}
}

// Settle returns when the writes to a namespace that have begun before the call have ended: the
// objects that a quota has counted so far can be listed then. It returns ctx's error if that ends
// before.
func (r *Reservations) Settle(ctx context.Context, namespace string) error {
	for _, write := range r.of(namespace) {
		select {
		case <-write.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ctx.Err()
}

func (r *Reservations) of(namespace string) (writes []context.Context) {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for write := range r.running[namespace] {
		writes = append(writes, write)
	}
	return writes
}
